#include "tests/fuzz/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "frontends/onnx/import.h"
#include "tests/support/run_plan.h"

namespace oclc::fuzz {
namespace {

// What rounding may do to a result of usual size, in units of the type's precision.
constexpr double kUlps = 24;

const HostTensor& value_of(const Case& c, const std::string& name) {
  for (const auto& [own, value] : c.inputs) {
    if (own == name) return value;
  }
  throw CompileError({.wanted = "a value for each input", .found = name});
}

std::vector<HostTensor> inputs_of(const Graph& graph, const Case& c) {
  std::vector<HostTensor> values;
  for (const auto& input : graph.inputs()) values.push_back(value_of(c, input->name));
  return values;
}

}  // namespace

double precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-52;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

std::unique_ptr<Module> import_case(const Case& c) {
  const std::string bytes = c.model.SerializeAsString();
  return import_onnx_bytes(std::as_bytes(std::span(bytes)));
}

std::vector<HostTensor> reference(const Module& module, const Case& c) {
  const Graph& graph = *module.entries.at(0);
  return evaluate(graph, inputs_of(graph, c));
}

std::string difference(const HostTensor& found, const Result& wanted) {
  const HostTensor& w = wanted.wanted;
  if (!(found.type() == w.type())) return fmt::format("{} instead of {}", found.type().text(), w.type().text());
  double largest = wanted.scale;
  for (std::int64_t i = 0; i < w.elements(); ++i) {
    if (std::isfinite(w.at(i))) largest = std::max(largest, std::fabs(w.at(i)));
  }
  const bool exact = wanted.exact || !is_float(w.dtype());
  const double slack = exact ? 0 : kUlps * wanted.tolerance * std::max(wanted.precision, precision_of(w.dtype())) * largest;
  for (std::int64_t i = 0; i < w.elements(); ++i) {
    if (!is_float(w.dtype()) && found.int_at(i) == w.int_at(i)) continue;
    const double a = found.at(i), b = w.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= slack) continue;
    return fmt::format("element {} of {} is {:.9g} instead of {:.9g} (allowed {:.3g})", i, w.type().text(), a, b, slack);
  }
  return {};
}

std::string check(const Case& c, const CompileOptions& options) {
  try {
    std::shared_ptr<Module> module = import_case(c);
    const std::vector<HostTensor> inputs = inputs_of(*module->entries.at(0), c);
    test::PlanRunner runner(std::move(module), options);
    const std::vector<HostTensor> found = runner.run(inputs);
    if (found.size() != c.results.size()) return "another number of results";
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string text = difference(found[i], c.results[i]);
      if (!text.empty()) return fmt::format("{}: {}", c.results[i].name, text);
    }
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

void write_case(const Case& c, const std::filesystem::path& folder, const std::string& text) {
  const auto set = folder / "test_data_set_0";
  std::filesystem::create_directories(set);
  std::ofstream(folder / "model.onnx", std::ios::binary) << c.model.SerializeAsString();
  const auto write = [&](const std::string& kind, std::size_t i, const HostTensor& value, const std::string& name) {
    std::ofstream(set / fmt::format("{}_{}.pb", kind, i), std::ios::binary) << tensor_proto(value, name).SerializeAsString();
  };
  for (std::size_t i = 0; i < c.inputs.size(); ++i) write("input", i, c.inputs[i].second, c.inputs[i].first);
  for (std::size_t i = 0; i < c.results.size(); ++i) write("output", i, c.results[i].wanted, c.results[i].name);
  std::ofstream(folder / "failure.txt") << text << "\n";
}

}  // namespace oclc::fuzz

#include "tests/support/run_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "compiler/ir/copy.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "frontends/cpp/typed/device_target.h"
#include "plan_generated.h"
#include "runtime/package/writer.h"
#include "tests/support/graph_check.h"

namespace oclc::test {
namespace {

const rt::Context& context() {
  static const rt::Context& shared = *new rt::Context([] {
    const char* selected = std::getenv("OCLC_TEST_DEVICE");
    return std::string(selected ? selected : "cpu");
  }());
  return shared;
}

// `tensor.shape` refers to `shape`.
oclc_tensor host_tensor(DType dtype, const std::vector<std::int64_t>& shape, void* data, std::size_t bytes) {
  static constexpr std::int64_t kNone = 0;
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  tensor.dtype = static_cast<oclc_dtype>(dtype);
  tensor.rank = static_cast<std::uint32_t>(shape.size());
  tensor.shape = shape.empty() ? &kNone : shape.data();
  tensor.host = data;
  tensor.bytes = bytes;
  return tensor;
}

}  // namespace

CompileOptions default_options() {
  CompileOptions options;
  options.target = std::getenv("OCLC_TEST_DEVICE") ? target_of(context().device()) : find_target("cpu");
  return options;
}

HostTensor random_tensor(DType dtype, std::vector<std::int64_t> shape, unsigned seed, double low, double high) {
  HostTensor tensor(dtype, std::move(shape));
  std::mt19937 generator(seed);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double x = low + (high - low) * static_cast<double>(generator()) / 4294967296.0;
    if (dtype == DType::boolean)
      tensor.set_int(i, x >= (low + high) / 2 ? 1 : 0);
    else
      tensor.set(i, is_float(dtype) ? x : std::floor(x));
  }
  return tensor;
}

Difference difference(const HostTensor& y, const HostTensor& reference) {
  OCLC_CHECK(y.type() == reference.type(), "results of types " + y.type().text() + " and " + reference.type().text());
  Difference result;
  double largest = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const double a = y.at(i), b = reference.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b))
      return {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    largest = std::max(largest, std::abs(b));
    result.max_abs = std::max(result.max_abs, std::abs(a - b));
  }
  if (result.max_abs > 0) result.max_rel = largest > 0 ? result.max_abs / largest : std::numeric_limits<double>::infinity();
  return result;
}

Difference difference(std::span<const HostTensor> y, std::span<const HostTensor> reference) {
  OCLC_CHECK(y.size() == reference.size(), "another number of results");
  Difference worst;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Difference one = difference(y[i], reference[i]);
    worst.max_abs = std::max(worst.max_abs, one.max_abs);
    worst.max_rel = std::max(worst.max_rel, one.max_rel);
  }
  return worst;
}

std::shared_ptr<Module> module_of(std::unique_ptr<Graph> graph) {
  auto module = std::make_shared<Module>();
  module->name = "test";
  module->symbols = symbols_of(*graph);
  module->entries.push_back(std::move(graph));
  return module;
}

PlanRunner::PlanRunner(std::shared_ptr<Module> module, const CompileOptions& options)
    : compiled_(compile(std::move(module), options)) {
  begin_session();
}

PlanRunner::PlanRunner(std::shared_ptr<Module> module, const CompileOptions& options,
                       const std::function<void(plan::PlanT&)>& edit)
    : compiled_(compile(std::move(module), options)) {
  plan::PlanT changed;
  plan::GetPlan(compiled_.plan.metadata.data())->UnPackTo(&changed);
  edit(changed);
  flatbuffers::FlatBufferBuilder builder;
  plan::FinishPlanBuffer(builder, plan::Plan::Pack(builder, &changed));
  compiled_.plan.metadata.assign(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
  begin_session();
}

void PlanRunner::begin_session() {
  package_ = package::package_to_memory(std::as_bytes(std::span(compiled_.plan.metadata)), compiled_.plan.constants);
  plan_ = rt::Plan::load(package_.data(), package_.size());
  session_ = std::make_unique<rt::Session>(plan_, context());
}

std::vector<HostTensor> PlanRunner::run(std::span<const HostTensor> inputs, const SymbolValues& symbols, std::uint32_t index) {
  const EntrySchedule& entry = compiled_.schedule.entries.at(index);
  OCLC_CHECK(inputs.size() == entry.inputs.size(), "another number of inputs");
  for (const auto& [symbol, value] : symbols) session_->bind_dim(symbol, value);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() == DType::string) {
      std::vector<const char*> texts;
      for (std::int64_t k = 0; k < inputs[i].elements(); ++k) texts.push_back(inputs[i].text_at(k).c_str());
      session_->set_strings(index, entry.inputs[i].first, texts, inputs[i].shape());
      continue;
    }
    // Inputs are only read.
    const auto bytes = const_cast<std::byte*>(inputs[i].data());
    session_->set_input(index, entry.inputs[i].first,
                        host_tensor(inputs[i].dtype(), inputs[i].shape(), bytes, inputs[i].bytes()));
  }
  std::vector<std::vector<std::byte>> rooms;
  const std::vector<oclc_binding_info> infos = plan_.outputs(index);
  for (const auto& [name, type] : entry.outputs) {
    if (infos[rooms.size()].open) {
      rooms.emplace_back();
      continue;
    }
    std::vector<std::byte>& room = rooms.emplace_back(session_->bytes(index, OCLC_OUTPUT, name));
    const std::vector<std::int64_t> largest = session_->shape(index, OCLC_OUTPUT, name);
    oclc_tensor tensor = host_tensor(type.dtype, largest, room.data(), room.size());
    if (!room.empty()) tensor.shape = nullptr;
    session_->set_output(index, name, tensor);
  }
  session_->run(index);
  std::vector<HostTensor> outputs;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    const auto& [name, type] = entry.outputs[i];
    HostTensor& y = outputs.emplace_back(type.dtype, session_->shape(index, OCLC_OUTPUT, name));
    if (infos[i].open) {
      rooms[i].resize(session_->bytes(index, OCLC_OUTPUT, name));
      session_->read_output(index, name, rooms[i].data(), rooms[i].size());
    }
    if (type.dtype == DType::string) {
      const auto* texts = reinterpret_cast<const char* const*>(rooms[i].data());
      for (std::int64_t k = 0; k < y.elements(); ++k) y.set_text(k, texts[k]);
    } else {
      std::copy_n(rooms[i].begin(), y.bytes(), y.mutable_data());
    }
  }
  return outputs;
}

std::string PlanRunner::source() const {
  std::string all;
  for (const GeneratedFile& file : compiled_.plan.files) all += file.source;
  return all;
}

Difference compare_with_reference(const Graph& graph, std::span<const HostTensor> inputs, const CompileOptions& options,
                                  const SymbolValues& symbols) {
  const std::vector<HostTensor> wanted = evaluate(graph, inputs, symbols);
  PlanRunner runner(module_of(copy_graph(graph)), options);
  const std::vector<HostTensor> found = runner.run(inputs, symbols);
  return test::difference(found, wanted);  // not that of graph_check.h
}

}  // namespace oclc::test

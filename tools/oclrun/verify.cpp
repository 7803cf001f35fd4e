#include "tools/oclrun/verify.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/io/npy.h"
#include "tools/oclrun/inputs.h"

namespace oclc::oclrun {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void bad_file(const std::string& path, const std::string& what) {
  throw io::FileError(io::FileProblem::contents, path + ": " + what);
}

double default_rtol(const std::string& precision) {
  if (precision == "fast") return 2e-5;
  if (precision == "tf32") return 5e-3;
  if (precision == "bf16") return 5e-2;
  return 5e-6;
}

class Verifier {
 public:
  Verifier(Runner& runner, const rt::Plan& plan, const Options& options) : runner_(runner), plan_(plan), options_(options) {}

  Verdict run() {
    const std::string folder = options_.verify_dir;
    if (!fs::is_directory(folder))
      throw io::FileError(io::FileProblem::io, folder + ": wanted a folder with cases.json or output_0.pb");
    if (fs::exists(folder + "/cases.json"))
      cases(folder);
    else
      data_sets(folder);
    for (const OutputVerdict& o : verdict_.outputs) {
      verdict_.passed = verdict_.passed && o.passed;
      verdict_.worst.max_abs = std::max(verdict_.worst.max_abs, o.difference.max_abs);
      verdict_.worst.max_rel = std::max(verdict_.worst.max_rel, o.difference.max_rel);
    }
    return std::move(verdict_);
  }

 private:
  void tolerances(double atol, double rtol) {
    verdict_.atol = options_.atol.value_or(atol);
    verdict_.rtol = options_.rtol.value_or(rtol);
  }

  void judge(const std::string& set, const io::Tensor& y, const io::Tensor& reference, std::uint64_t stride, double scale) {
    OutputVerdict o;
    o.set = set;
    o.output = y.name;
    o.difference = compare(y, reference, stride, scale);
    // max |ref| of the whole tensor; an exact result passes whatever it is.
    const double largest = o.difference.max_rel > 0 ? o.difference.max_abs / o.difference.max_rel : 0;
    o.passed = o.difference.max_abs <= verdict_.atol + verdict_.rtol * (std::isfinite(largest) ? largest : 0);
    verdict_.outputs.push_back(o);
  }

  void data_sets(const std::string& folder) {
    tolerances(1e-7, 1e-3);
    std::vector<std::string> sets;
    if (fs::exists(folder + "/output_0.pb")) sets.push_back(folder);
    for (const auto& item : fs::directory_iterator(folder))
      if (item.path().filename().string().starts_with("test_data_set_") && fs::exists(item.path() / "output_0.pb"))
        sets.push_back(item.path().string());
    std::sort(sets.begin(), sets.end());
    if (sets.empty()) bad_file(folder, "wanted cases.json, output_0.pb or folders test_data_set_*, found none of them");
    for (const std::string& set : sets) data_set(set);
  }

  void data_set(const std::string& folder) {
    Options from_files = options_;
    if (from_files.inputs_dir.empty()) from_files.inputs_dir = folder;
    for (const oclc_binding_info& input : runner_.inputs())
      oclc_session_set_input(runner_.session().get(), runner_.entry(), input.name, nullptr);
    bind_from_options(runner_, from_files);
    runner_.run();
    const auto references = read_data_set(folder, "output", runner_.outputs());
    for (const io::Tensor& reference : references) {
      const io::Tensor& y = result(reference.name, folder);
      if (y.dtype != reference.dtype)
        bad_file(folder, "output '" + y.name + "': the plan gives " + oclc_dtype_name(y.dtype) + ", the reference is " +
                             oclc_dtype_name(reference.dtype));
      if (y.shape != reference.shape)
        bad_file(folder, "output '" + y.name + "': the reference has another shape than the plan's result");
      judge(fs::path(folder).filename().string(), y, reference, 1, 0);
    }
  }

  const io::Tensor& result(const std::string& name, const std::string& where) const {
    for (const io::Tensor& y : runner_.results())
      if (y.name == name) return y;
    bad_file(where, "the plan has no output '" + name + "'");
  }

  void cases(const std::string& folder) {
    const std::string path = folder + "/cases.json";
    tolerances(0, default_rtol(plan_.info().precision));
    try {
      const json document = json::parse(io::read_file(path, 1 << 26));
      const json& list = document.at("cases");
      if (options_.verify_case >= static_cast<int>(list.size()))
        bad_file(path,
                 "has " + std::to_string(list.size()) + " cases, --case asks for case " + std::to_string(options_.verify_case));
      std::string misfits;
      int ran = 0;
      for (int i = 0; i < static_cast<int>(list.size()); ++i) {
        if (options_.verify_case >= 0 && i != options_.verify_case) continue;
        const Dims dims = dims_of(list[static_cast<std::size_t>(i)]);
        if (const std::string misfit = misfit_of(document.at("inputs"), dims); !misfit.empty()) {
          misfits += "\n  case " + std::to_string(i) + " (" + dims_text(dims) + "): " + misfit;
          continue;
        }
        run_case(folder, document.at("inputs"), list[static_cast<std::size_t>(i)], dims);
        ++ran;
      }
      if (ran == 0) bad_file(path, "no case fits the plan:" + misfits);
    } catch (const json::exception& error) {
      bad_file(path, std::string("not a list of cases: ") + error.what());
    }
  }

  static Dims dims_of(const json& item) {
    Dims dims;
    for (const auto& [name, value] : item.at("dims").items()) dims.emplace_back(name, value.get<std::int64_t>());
    return dims;
  }

  // Why a case does not suit the plan or --dim; "" if it does.
  std::string misfit_of(const json& specs, const Dims& dims) const {
    for (const auto& [name, value] : options_.dims)
      for (const auto& [other, wanted] : dims)
        if (name == other && value != wanted) return "--dim says " + name + "=" + std::to_string(value);
    for (const oclc_symbol_info& symbol : plan_.symbols())
      for (const auto& [name, value] : dims)
        if (name == symbol.name && (value < symbol.lo || value > symbol.hi)) return name + " is outside the plan's range";
    for (std::uint32_t i = 0; i < runner_.inputs().size(); ++i) {
      const json* spec = nullptr;
      for (const json& s : specs)
        if (s.at("name").get<std::string>() == runner_.inputs()[i].name) spec = &s;
      if (!spec) return std::string("it has no input '") + runner_.inputs()[i].name + "'";
      const json& shape = spec->at("shape");
      if (shape.size() != runner_.inputs()[i].rank)
        return std::string("input '") + runner_.inputs()[i].name + "' has another rank";
      for (std::uint32_t d = 0; d < shape.size(); ++d) {
        const std::string text = oclc_plan_dimension_text(plan_.get(), runner_.entry(), OCLC_INPUT, i, d);
        std::int64_t fixed = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fixed);
        if (error != std::errc() || end != text.data() + text.size()) continue;
        std::int64_t value = shape[d].is_number_integer() ? shape[d].get<std::int64_t>() : -1;
        for (const auto& [name, bound] : dims)
          if (shape[d].is_string() && shape[d].get<std::string>() == name) value = bound;
        if (value != fixed)
          return std::string("input '") + runner_.inputs()[i].name + "' dimension " + std::to_string(d) + " is " +
                 std::to_string(value) + ", the plan has " + text;
      }
    }
    return "";
  }

  void run_case(const std::string& folder, const json& specs, const json& item, const Dims& dims) {
    const std::string path = folder + "/cases.json";
    std::vector<io::Tensor> inputs;
    for (const oclc_binding_info& input : runner_.inputs())
      for (const json& spec : specs)
        if (spec.at("name").get<std::string>() == input.name) inputs.push_back(case_tensor(spec, dims, path));
    Dims known;
    for (const oclc_symbol_info& symbol : plan_.symbols())
      for (const auto& dim : dims)
        if (dim.first == symbol.name && !symbol.loop_counter) known.push_back(dim);
    runner_.bind(known, std::move(inputs));
    runner_.run();
    for (const json& output : item.at("outputs")) {
      const io::Tensor& y = result(output.at("name").get<std::string>(), path);
      if (output.at("shape").get<std::vector<std::int64_t>>() != y.shape)
        bad_file(path, "output '" + y.name + "': the reference has shape " + output.at("shape").dump() +
                           ", the plan gives another one");
      const auto stride = output.value("stride", std::uint64_t{1});
      const io::Tensor reference = io::read_npy(folder + "/" + output.at("file").get<std::string>());
      if (stride == 0 || reference.elements() != (y.elements() + stride - 1) / stride)
        bad_file(folder + "/" + output.at("file").get<std::string>(), "has " + std::to_string(reference.elements()) +
                                                                          " elements, wanted every " + std::to_string(stride) +
                                                                          "th of " + std::to_string(y.elements()));
      judge(dims_text(dims), y, reference, stride, output.value("max_abs", 0.0));
    }
  }

  Runner& runner_;
  const rt::Plan& plan_;
  const Options& options_;
  Verdict verdict_;
};

}  // namespace

Difference compare(const io::Tensor& y, const io::Tensor& reference, std::uint64_t stride, double scale) {
  Difference d;
  double largest = 0;
  if (reference.dtype == OCLC_STRING) {  // equal or not
    for (std::uint64_t i = 0; i < reference.elements(); ++i)
      if (std::strcmp(y.text_at(i * stride), reference.text_at(i)) != 0)
        d.max_abs = d.max_rel = std::numeric_limits<double>::infinity();
    return d;
  }
  for (std::uint64_t i = 0; i < reference.elements(); ++i) {
    const double a = y.at(i * stride);
    const double b = reference.at(i);
    if (std::isfinite(b)) largest = std::max(largest, std::fabs(b));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double difference = std::fabs(a - b);
    d.max_abs = std::max(d.max_abs, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
  }
  if (scale > 0) largest = scale;
  d.max_rel = d.max_abs == 0 ? 0 : d.max_abs / largest;
  return d;
}

Verdict verify(Runner& runner, const rt::Plan& plan, const Options& options) { return Verifier(runner, plan, options).run(); }

nlohmann::json verdict_json(const Verdict& v) {
  nlohmann::json list = nlohmann::json::array();
  for (const OutputVerdict& o : v.outputs)
    list.push_back({{"case", o.set},
                    {"output", o.output},
                    {"max_abs", o.difference.max_abs},
                    {"max_rel", o.difference.max_rel},
                    {"passed", o.passed}});
  return {{"passed", v.passed}, {"max_abs", v.worst.max_abs}, {"max_rel", v.worst.max_rel}, {"atol", v.atol}, {"rtol", v.rtol},
          {"outputs", list}};
}

std::string summary(const Verdict& v) {
  char text[256];
  std::snprintf(text, sizeof text, "verify: %s max_abs=%.3g max_rel=%.3g (atol=%g rtol=%g)", v.passed ? "PASS" : "FAIL",
                v.worst.max_abs, v.worst.max_rel, v.atol, v.rtol);
  return text;
}

}  // namespace oclc::oclrun

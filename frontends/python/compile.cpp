// oclc.compile(): the command `oclc MODEL -o PLAN` in the process, with the same options.
#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "compiler/training/training.h"
#include "frontends/pt2/import.h"
#include "frontends/python/handles.h"
#include "runtime/package/package.h"
#include "runtime/package/writer.h"
#include "tools/oclc/options.h"
#include "tools/oclc/plan_view.h"
#include "tools/oclc/report.h"

namespace oclc::python {
namespace {

namespace nb = nanobind;

// The options of oclc/plan.py by name.
class Options {
 public:
  explicit Options(nb::dict values) : values_(std::move(values)) {}

  std::string text(const char* name) const { return nb::cast<std::string>(values_[name]); }
  std::vector<std::string> texts(const char* name) const { return nb::cast<std::vector<std::string>>(values_[name]); }
  bool flag(const char* name) const { return nb::cast<bool>(values_[name]); }
  std::uint32_t number(const char* name) const { return nb::cast<std::uint32_t>(values_[name]); }
  nb::object object(const char* name) const { return values_[name]; }

 private:
  nb::dict values_;
};

// Stages and warnings to Python's functions, which may be None. Called without the GIL; an interrupt from the keyboard ends the
// compilation at the next stage.
struct Listeners {
  nb::object stage, warning;

  void at_stage(std::string_view name) const {
    const nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!stage.is_none()) stage(nb::str(name.data(), name.size()));
  }
  void warn(const std::string& text) const {
    const nb::gil_scoped_acquire held;
    if (!warning.is_none()) warning(text);
  }
};

struct Request {
  std::string path, external_data_dir;
  std::vector<std::byte> bytes;
  std::map<std::string, HostTensor, std::less<>> constants;  // of a graph, by placeholder; views of the caller's memory
  tool::ReadOptions read;
  tool::BuildOptions build;
  TrainingOptions training;
  std::vector<Carry> carries;
  bool graph = false;  // `bytes` are a graph of torch.compile in the JSON of `.pt2`
  bool trains = false, recomputes = false, report = false;
};

Request request_of(const Options& o) {
  Request r;
  r.path = o.text("path");
  if (const nb::object bytes = o.object("bytes"); !bytes.is_none()) {
    const auto data = nb::cast<nb::bytes>(bytes);
    const auto* begin = static_cast<const std::byte*>(data.data());
    r.bytes.assign(begin, begin + data.size());
  }
  r.read.dims = o.texts("dims");
  r.read.shapes = o.texts("shapes");
  r.read.lengths = o.texts("lengths");
  r.read.values = o.texts("values");
  r.read.typical = o.texts("typical");
  r.read.ops = o.texts("ops");
  r.carries = tool::parse_carries(o.texts("carries"));
  r.read.external_data_dir = o.text("external_data_dir");
  r.read.allow_symlinks = o.flag("allow_symlinks");
  r.read.allow_newer_opset = o.flag("allow_newer_opset");
  r.build = {o.text("target"), o.text("device"), o.texts("disable"),  o.text("tuned"),
             o.text("conv"),   o.text("gemm"),   o.text("precision"), o.text("subnormals")};
  r.trains = !o.text("loss").empty();
  if (r.trains)
    r.training = {parse_loss(o.text("loss")),
                  parse_optimizer(o.text("optimizer")),
                  o.text("prediction"),
                  o.texts("frozen"),
                  o.number("seed"),
                  o.flag("accumulate"),
                  o.flag("init"),
                  o.text("mixed").empty() ? NamedNumbers() : parse_mixed(o.text("mixed"))};
  for (const auto& [name, dtype, shape, address] :
       nb::cast<std::vector<std::tuple<std::string, std::int64_t, std::vector<std::int64_t>, std::uintptr_t>>>(
           o.object("constants")))
    r.constants.emplace(name,
                        HostTensor(dtype_of_torch(dtype).value(), shape, reinterpret_cast<const std::byte*>(address), {}));
  r.recomputes = o.flag("recompute");
  r.report = o.flag("report");
  r.graph = o.flag("graph");
  return r;
}

// The plan's bytes, and of each row of the report: node, operators, fate, why it was not fused further.
struct Answer {
  std::vector<std::byte> plan;
  std::vector<tool::ReportRow> rows;
};

std::shared_ptr<Module> read(const Request& request, const ImportOptions& import) {
  if (!request.path.empty()) return tool::read_model(request.path, import);
  if (!request.graph) return import_onnx_bytes(request.bytes, std::nullopt, import);
  const auto constant = [&](std::string_view placeholder) {
    const auto found = request.constants.find(placeholder);
    return found == request.constants.end() ? std::nullopt : std::optional(found->second);
  };
  return import_pt2_graph({reinterpret_cast<const char*>(request.bytes.data()), request.bytes.size()}, constant);
}

Answer answer(const Request& request, const Listeners& listeners) {
  tool::Progress silent(tool::ProgressForm::none);
  listeners.at_stage("device");
  CompileOptions options = tool::compile_options(request.build, silent);
  options.progress = [&](std::string_view name) { listeners.at_stage(name); };
  options.report = request.report;
  if (request.recomputes) options.recompute_bytes = 0;
  for (const MixedRow& row : mixed_types())
    if (row.name == request.training.mixed.name) options.mixed = row.storage;
  ImportOptions import = tool::import_options(request.read);
  import.training = request.trains;
  import.warn = [&](const std::string& text) { listeners.warn(text);
};
listeners.at_stage("graph");
std::shared_ptr<Module> module = read(request, import);
if (request.trains) options.limits = build_training(*module, request.training);
carry_outputs(*module, request.carries);
Answer result;
std::vector<tool::SourceNode> sources;
if (request.report) sources = tool::source_nodes(*module);
const Compiled compiled = compile(std::move(module), options);
if (request.report) result.rows = tool::report_rows(sources, compiled);
listeners.at_stage("write");
result.plan = package::package_to_memory(std::as_bytes(std::span(compiled.plan.metadata)), compiled.plan.constants);
return result;
}  // namespace

// (Plan, rows of the report)
nb::tuple compile_plan(nb::dict values, nb::object stage, nb::object warning) {
  const Request request = request_of(Options(std::move(values)));
  const Listeners listeners{std::move(stage), std::move(warning)};
  Answer result;
  {
    const nb::gil_scoped_release released;
    result = answer(request, listeners);
  }
  nb::list rows;
  for (const tool::ReportRow& row : result.rows) rows.append(nb::make_tuple(row.node, row.operators, row.fate, row.why_not));
  return nb::make_tuple(std::make_shared<Plan>(std::move(result.plan)), rows);
}

// What `oclc info PLAN --json` prints.
std::string plan_json(nb::bytes bytes, nb::dict sizes) {
  const auto loaded = package::Package::from_memory({static_cast<const std::byte*>(bytes.data()), bytes.size()});
  const tool::PlanView view(loaded->plan());
  SymbolValues given;
  for (const auto& [name, value] : sizes) given[nb::cast<std::string>(name)] = nb::cast<std::int64_t>(value);
  return view.json(view.bind(given)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> names_of_losses() {
  std::vector<std::string> names;
  for (const LossRow& row : losses()) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> names_of_optimizers() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : optimizers()) names.emplace_back(row.name);
  return names;
}

}  // namespace oclc::python

void bind_compile(nb::module_& module) {
  module.def("compile", compile_plan, nb::arg("options"), nb::arg("stage").none(), nb::arg("warning").none());
  module.def("plan_json", plan_json);
  module.def("aten_operators", [] {
    std::vector<std::string> names;
    for (const std::string_view name : pt2_operators()) names.emplace_back(name);
    return names;
  });
  module.def("losses", names_of_losses);
  module.def("optimizers", names_of_optimizers);
}

}  // namespace oclc::python

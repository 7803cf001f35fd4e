// oclc info FILE: what a plan or a model holds.
#include <fmt/format.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler/ir/op_def.h"
#include "runtime/package/container.h"
#include "runtime/package/package.h"
#include "runtime/package/text/unicode.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/memory_peak.h"
#include "tools/oclc/options.h"
#include "tools/oclc/plan_view.h"

namespace oclc::tool {

const std::string_view kInfoHelp = R"(usage: oclc info FILE [options]
Shows what a plan or an ONNX model holds: inputs, outputs, symbols; of a plan its state, the launches with flops and bytes, the arena
beside the largest sum of bytes alive at once (no arena can be smaller), and the constants; of a model its operators and parameters.

  --dim N=4                sizes for the figures of a plan (others count as 1), or for the model's inputs
  --shape x=1x3x224x224    fix an input's shape of a model
  --op FILE  --external-data-dir DIR  --allow-symlinks  --allow-newer-opset   how a model is read, see oclc --help
  --memory                 of a plan: which buffers are alive when most bytes are
  --json                   as JSON
  --color auto|always|never   -v   -q   -h, --help
)";

namespace {

using nlohmann::json;

bool is_plan(const std::string& file) {
  char head[sizeof package::kMagic] = {};
  std::ifstream in(file, std::ios::binary);
  in.read(head, sizeof head);
  return in && std::equal(std::begin(head), std::end(head), reinterpret_cast<const char*>(package::kMagic));
}

std::string count_text(double n) {
  if (n < 1e4) return fmt::format("{:.0f}", n);
  if (n < 1e6) return fmt::format("{:.1f} k", n * 1e-3);
  return n < 1e9 ? fmt::format("{:.1f} M", n * 1e-6) : fmt::format("{:.2f} G", n * 1e-9);
}

std::string extents_text(const std::vector<std::int64_t>& global, const std::vector<std::uint32_t>& local) {
  return global.empty() ? "" : fmt::format("{} / {}", fmt::join(global, "x"), fmt::join(local, "x"));
}

// Launches, and parts of launches, as the plan counts them.
std::string step_name(const EntryFigures& figures, int step) {
  for (const LaunchFigures& launch : figures.launches) {
    const int count = std::max(1, static_cast<int>(launch.parts.size()));
    if (step < count) return launch.parts.empty() ? launch.name : launch.parts[static_cast<std::size_t>(step)].name;
    step -= count;
  }
  return {};
}

void print_peak(const plan::Plan& plan, std::uint32_t entry, const EntryFigures& figures) {
  const MemoryPeak peak = memory_peak(plan, entry, figures.memory);
  if (peak.alive.empty()) return;
  print_result(fmt::format("  most bytes are alive at step {}, {}: {}\n", peak.step, step_name(figures, peak.step),
                           size_text(static_cast<double>(peak.bytes))));
  for (const AliveBuffer& a : peak.alive) {
    const std::string of = a.bytes == a.of ? "" : " of " + size_text(static_cast<double>(a.of));
    print_result(fmt::format("  {:>12}  steps {:>4} to {:>4}  {}{}\n", size_text(static_cast<double>(a.bytes)), a.first, a.last,
                             a.name, of));
  }
}

void print_entry(const PlanView& view, std::uint32_t entry, const SymbolValues& at) {
  const EntryFigures f = view.figures(entry, at);
  print_result(fmt::format("entry {}{}\n", f.name, at.empty() ? "" : " at " + dims_text(at)));
  for (const PlanBinding& b : view.inputs(entry))
    print_result(fmt::format("  input   {}: {}{}\n", b.name, b.type.text(), b.values));
  for (const PlanBinding& b : view.outputs(entry)) print_result(fmt::format("  output  {}: {}\n", b.name, b.type.text()));
  print_result(fmt::format("  {:>4} {:36} {:12} {:>6} {:>10} {:>10}  {:22} {}\n", "", "kernel", "anchor", "calls", "flops",
                           "bytes", "work-items / group", "nodes"));
  for (std::size_t i = 0; i < f.launches.size(); ++i) {
    const LaunchFigures& l = f.launches[i];
    print_result(fmt::format("  {:>4} {} {:12} {:>6} {:>10} {:>10}  {:22} {}\n", i, table_cell(l.name, 36), l.anchor, l.calls,
                             count_text(l.flops), count_text(l.bytes), extents_text(l.global, l.local),
                             l.parts.empty() ? l.nodes : fmt::format("{} parts:", l.parts.size())));
    for (const LaunchFigures& p : l.parts) {
      print_result(fmt::format("         {} {:12} {:>6} {:>10} {:>10}  {:22} {}\n", table_cell(p.name, 34), p.anchor, p.calls,
                               count_text(p.flops), count_text(p.bytes), "", p.nodes));
    }
  }
  const double arena = static_cast<double>(f.memory.arena_bytes), live = static_cast<double>(f.memory.live_bytes);
  print_result(fmt::format("  {} launches ({} calls), {} flops, {} bytes moved\n", f.launches.size(), f.calls,
                           count_text(f.flops), count_text(f.bytes)));
  print_result(fmt::format("  arena {}, largest sum of live bytes {}, ratio {:.3f}\n", size_text(arena), size_text(live),
                           live > 0 ? arena / live : 1.0));
}

// A property of the model; long ones are whole in --json.
std::string property_line(const std::string& name, const std::string& value) {
  constexpr std::size_t kMost = 160;
  const std::string text = package::shown(value);
  return fmt::format(
      "property {}: {}\n", package::shown(name),
      text.size() <= kMost ? text : fmt::format("{}.. ({} bytes)", package::shown(value.substr(0, kMost)), value.size()));
}

int plan_info(const std::string& file, const SymbolValues& given, bool as_json, bool memory) {
  const auto package = package::Package::open(file);
  const plan::Plan& plan = package->plan();
  const PlanView view(plan);
  const SymbolValues at = view.bind(given);
  if (as_json) {
    print_result(view.json(at).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    return 0;
  }
  const json head = view.json(at);
  print_result(fmt::format("plan of model '{}': target {}, precision {}, compiled by oclc {}\n",
                           head["model"].get<std::string>(), head["target"].get<std::string>(),
                           head["precision"].get<std::string>(), head["producer"].get<std::string>()));
  std::string options;
  for (const json& option : head["options"]) options += " " + option.get<std::string>();
  print_result(fmt::format("options:{}\n", options));
  for (const auto& [name, value] : head["metadata"].items()) print_result(property_line(name, value.get<std::string>()));
  for (const json& s : head["symbols"]) {
    const auto hi = s["hi"].get<std::int64_t>();
    print_result(fmt::format("symbol {} from {}{}\n", s["name"].get<std::string>(), s["lo"].get<std::int64_t>(),
                             hi == kUnbounded ? "" : fmt::format(" to {}", hi)));
  }
  for (const PlanState& s : view.states(at)) {
    const std::string what =
        s.tensors == 0 ? s.type : fmt::format("{} tensors, {}", s.tensors, size_text(static_cast<double>(s.bytes)));
    const std::string carried = s.carried_from.empty() ? "" : fmt::format(", output '{}' of the run before", s.carried_from);
    print_result(fmt::format("state   {}: {}{}\n", s.name, what, carried));
  }
  for (std::uint32_t i = 0; i < view.entries(); ++i) {
    print_entry(view, i, at);
    if (memory) print_peak(plan, i, view.figures(i, at));
  }
  print_result(fmt::format("{} kernels, constants {}\n", head["programs"].get<std::size_t>(),
                           size_text(static_cast<double>(package->constants().size()))));
  return 0;
}

struct ModelFigures {
  std::int64_t parameters = 0, parameter_bytes = 0;
  std::size_t operators = 0;  // of the core set
};

ModelFigures figures_of(const Graph& graph) {
  ModelFigures out;
  for (const Node* node : graph.nodes()) {
    if (const HostTensor* tensor = node->outputs.empty() ? nullptr : constant_of(node->output())) {
      out.parameters += tensor->elements();
      out.parameter_bytes += static_cast<std::int64_t>(tensor->bytes());
      continue;
    }
    ++out.operators;
    for (const auto& body : node->bodies) {
      const ModelFigures inner = figures_of(*body);
      out.parameters += inner.parameters;
      out.parameter_bytes += inner.parameter_bytes;
      out.operators += inner.operators;
    }
  }
  return out;
}

int model_info(const std::string& file, const ReadOptions& read, bool as_json) {
  const ImportOptions options = import_options(read);
  const std::shared_ptr<Module> module = read_model(file, options);
  const std::vector<OpUse> uses = file == "-" ? std::vector<OpUse>() : read_ops(file, options);
  const Graph& graph = *module->entries.at(0);
  const ModelFigures f = figures_of(graph);
  json symbols = json::array(), inputs = json::array(), outputs = json::array(), operators = json::object();
  for (const Expr& symbol : module->symbols) symbols.push_back(symbol.text());
  for (const auto& input : graph.inputs()) inputs.push_back({{"name", input->name}, {"type", input->type.text()}});
  for (const auto& [name, value] : graph.outputs()) outputs.push_back({{"name", name}, {"type", value->type.text()}});
  for (const OpUse& use : uses) operators[use.domain.empty() ? use.op : use.domain + "." + use.op] = use.count;
  if (as_json) {
    const json document = {{"schema", 1},
                           {"kind", "model"},
                           {"model", module->name},
                           {"symbols", symbols},
                           {"inputs", inputs},
                           {"outputs", outputs},
                           {"operators", operators},
                           {"core_operators", f.operators},
                           {"parameters", f.parameters},
                           {"parameter_bytes", f.parameter_bytes}};
    print_result(document.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    return 0;
  }
  print_result(fmt::format("model '{}'\n", module->name));
  for (const json& s : symbols) print_result(fmt::format("symbol {}\n", s.get<std::string>()));
  for (const json& b : inputs)
    print_result(fmt::format("input   {}: {}\n", b["name"].get<std::string>(), b["type"].get<std::string>()));
  for (const json& b : outputs)
    print_result(fmt::format("output  {}: {}\n", b["name"].get<std::string>(), b["type"].get<std::string>()));
  for (const auto& [name, n] : operators.items()) print_result(fmt::format("{:>6} {}\n", n.get<std::int64_t>(), name));
  print_result(fmt::format("{} core operators, {} parameters, {}\n", f.operators, count_text(static_cast<double>(f.parameters)),
                           size_text(static_cast<double>(f.parameter_bytes))));
  return 0;
}

}  // namespace

int info_command(int argc, char** argv, std::string& file) {
  ReadOptions read;
  OutputOptions shown;
  CLI::App app;
  app.add_option("file", file);
  bool memory = false;
  app.add_flag("--memory", memory);
  add_output_options(app, shown);
  add_read_options(app, read);
  if (parse(app, argc, argv, kInfoHelp)) return 0;
  if (file.empty()) usage_error("wanted a plan or a model, found none");
  if (file != "-" && is_plan(file)) {
    if (!read.shapes.empty()) usage_error("--shape is for models; give a plan's sizes with --dim");
    return plan_info(file, parse_dims(read.dims), shown.json, memory);
  }
  if (memory) usage_error("--memory is for plans");
  return model_info(file, read, shown.json);
}

}  // namespace oclc::tool

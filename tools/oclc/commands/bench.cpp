// oclc bench MODEL...: the fused beside the unfused schedule of one model, run alternately in one process.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/package/writer.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/commands/bench_run.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/interrupt.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

const std::string_view kBenchHelp = R"(usage: oclc bench MODEL... [options]
Compiles each model fused and unfused (one kernel an operator), runs the two alternately on one device, and prints launches, bytes
moved, arena and times beside each other, and the ratios unfused / fused. Inputs are pseudo-random.

  --vs unfused             what to compare with
  --dim N=4                sizes of symbolic dimensions; others are 1
  --shape x=1x3x224x224    fix an input's shape
  -d, --device SEL         index | P:D | part of its name | cpu | gpu (default: the device found)
  --target NAME            compile for this target instead of the device's own
  --runs N                 timed runs of each (default: as --time allows, at least 5)
  --time S                 seconds for the timed runs of a model (default: 3)
  --disable PASS[,PASS]    of both sides
  --conv, --gemm, --precision, --subnormals, --op, --external-data-dir, --allow-symlinks, --allow-newer-opset   see oclc --help
  --json                   as JSON
  -v  -q  --color auto|always|never  --progress auto|none|json  -h, --help
)";

namespace {

using nlohmann::json;

struct BenchArguments {
  std::vector<std::string> models;
  std::string versus = "unfused";
  int runs = 0;
  double seconds = 3;
  OutputOptions shown;
  ReadOptions read;
  BuildOptions build;
};

// One side of the comparison.
struct Side {
  explicit Side(std::string side) : name(std::move(side)) {}

  std::string name;
  std::optional<rt::Plan> plan;
  std::optional<BenchRun> run;
  std::size_t kernels = 0;
  EntryFigures figures;
  Times times;
};

struct Comparison {
  std::string model;
  SymbolValues dims;
  Side fused{"fused"}, other{"unfused"};
  double max_rel = 0;

  double time_ratio() const { return other.times.at(0.5) / fused.times.at(0.5); }
  double fastest_ratio() const { return other.times.at(0) / fused.times.at(0); }
  double bytes_ratio() const { return other.figures.bytes / fused.figures.bytes; }
  double launch_ratio() const { return static_cast<double>(other.figures.calls) / static_cast<double>(fused.figures.calls); }
};

// All symbols bound: those not given become 1.
ImportOptions static_sizes(const std::string& model, const BenchArguments& arguments, SymbolValues& dims) {
  ImportOptions options = import_options(arguments.read);
  ImportOptions silent = options;
  silent.warn = nullptr;
  const std::shared_ptr<Module> module = read_model(model, silent);
  for (const Expr& symbol : module->symbols)
    options.dims.emplace(*symbol.symbol_name(), std::max<std::int64_t>(symbol.lower(), 1));
  dims.clear();
  for (const auto& [name, value] : options.dims) dims[name] = value;
  return options;
}

// The plan's file is gone once it is loaded.
rt::Plan load(const BuiltPlan& built) {
  const FilesBeingWritten guard;
  std::string path = (std::filesystem::temp_directory_path() / "oclc-bench-XXXXXX").string();
  const int descriptor = ::mkstemp(path.data());
  if (descriptor < 0) io_error(path, "cannot make a temporary file", errno);
  ::close(descriptor);
  struct Removal {
    const std::string& path;
    ~Removal() { ::unlink(path.c_str()); }
  } const removal{path};
  package::write_package(path, std::as_bytes(std::span(built.metadata)), built.constants);
  return rt::Plan::load(path);
}

void build_side(Side& side, const std::string& model, const ImportOptions& import, const CompileOptions& options,
                Progress& progress) {
  progress.stage(side.name + " graph");
  const Compiled compiled = compile(read_model(model, import), options);
  const PlanView view(*plan::GetPlan(compiled.plan.metadata.data()));
  side.kernels = compiled.plan.files.size();
  side.figures = view.figures(0, view.bind({}));
  side.plan = load(compiled.plan);
}

// One warm-up of each, then alternately.
void time_sides(Comparison& c, const BenchArguments& arguments) {
  c.fused.run->run_ms();
  c.other.run->run_ms();
  c.max_rel = BenchRun::difference(c.fused.run.value(), c.other.run.value());
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  constexpr int kFewest = 5;
  for (int i = 0; arguments.runs > 0 ? i < arguments.runs : i < kFewest || spent() < arguments.seconds; ++i) {
    c.fused.times.sorted_ms.push_back(c.fused.run->run_ms());
    c.other.times.sorted_ms.push_back(c.other.run->run_ms());
  }
  for (Side* side : {&c.fused, &c.other}) std::sort(side->times.sorted_ms.begin(), side->times.sorted_ms.end());
}

Comparison compare(const std::string& model, const BenchArguments& arguments, const rt::Context& context, Progress& progress) {
  Comparison c;
  c.model = model;
  progress.stage("sizes");
  const ImportOptions import = static_sizes(model, arguments, c.dims);
  BuildOptions build = arguments.build;
  if (!build.target.empty()) build.device.clear();
  CompileOptions options = compile_options(build, progress);
  build_side(c.fused, model, import, options, progress);
  options.disabled.emplace_back("fuse");
  ImportOptions silent = import;
  silent.warn = nullptr;
  build_side(c.other, model, silent, options, progress);
  for (Side* side : {&c.fused, &c.other}) {
    progress.stage(side->name + " programs");
    side->run.emplace(*side->plan, context, SymbolValues());
  }
  progress.stage("timing");
  time_sides(c, arguments);
  return c;
}

json side_json(const Side& s) {
  return {{"kernels", s.kernels},
          {"launches", s.figures.calls},
          {"flops", s.figures.flops},
          {"bytes", s.figures.bytes},
          {"arena_bytes", s.figures.memory.arena_bytes},
          {"live_bytes", s.figures.memory.live_bytes},
          {"median_ms", s.times.at(0.5)},
          {"min_ms", s.times.at(0)},
          {"p10_ms", s.times.at(0.1)},
          {"p90_ms", s.times.at(0.9)},
          {"times_ms", s.times.sorted_ms}};
}

json comparison_json(const Comparison& c) {
  return {
      {"model", c.model},
      {"dims", c.dims},
      {"fused", side_json(c.fused)},
      {"unfused", side_json(c.other)},
      {"ratio",
       {{"time", c.time_ratio()}, {"min_time", c.fastest_ratio()}, {"bytes", c.bytes_ratio()}, {"launches", c.launch_ratio()}}},
      {"max_rel", c.max_rel}};
}

std::string comparison_text(const Comparison& c) {
  std::string out = fmt::format("{}{}\n", c.model, c.dims.empty() ? "" : "  " + dims_text(c.dims));
  out += fmt::format("  {:8} {:>8} {:>9} {:>14} {:>12} {:>11} {:>10} {:>21}\n", "", "kernels", "launches", "bytes moved",
                     "arena", "median ms", "min ms", "p10..p90 ms");
  for (const Side* s : {&c.fused, &c.other}) {
    out += fmt::format("  {:8} {:>8} {:>9} {:>14} {:>12} {:>11.3f} {:>10.3f} {:>21}\n", s->name, s->kernels, s->figures.calls,
                       size_text(s->figures.bytes), size_text(static_cast<double>(s->figures.memory.arena_bytes)),
                       s->times.at(0.5), s->times.at(0), fmt::format("{:.3f}..{:.3f}", s->times.at(0.1), s->times.at(0.9)));
  }
  out += fmt::format(
      "  ratio: time {:.2f} (fastest runs {:.2f}), bytes {:.2f}, launches {:.2f}; {} runs each, max_rel {:.1e}\n",
      c.time_ratio(), c.fastest_ratio(), c.bytes_ratio(), c.launch_ratio(), c.fused.times.sorted_ms.size(), c.max_rel);
  return out;
}

}  // namespace

int bench_command(int argc, char** argv, std::string& file) {
  BenchArguments arguments;
  CLI::App app;
  app.add_option("models", arguments.models);
  app.add_option("--vs", arguments.versus)->check(command_line::one_of({"unfused"}));
  app.add_option("--runs", arguments.runs)->check(command_line::above_zero());
  app.add_option("--time", arguments.seconds)->check(command_line::above_zero());
  add_output_options(app, arguments.shown);
  add_read_options(app, arguments.read);
  add_build_options(app, arguments.build);
  if (parse(app, argc, argv, kBenchHelp)) return 0;
  if (arguments.models.empty()) usage_error("wanted a model file, found none");
  Progress progress(arguments.shown.progress_form());
  progress.stage("device");
  oclc_context_options wish = OCLC_INIT(oclc_context_options);
  wish.device = arguments.build.device.c_str();
  wish.wait_for_optimized = 1;
  const rt::Context context(wish);
  if (arguments.build.device.empty() && arguments.build.target.empty())
    arguments.build.device = std::to_string(context.device().index);
  if (!arguments.shown.json) print_result(fmt::format("device {}: {}\n", context.device().index, context.device().name));
  json models = json::array();
  for (const std::string& model : arguments.models) {
    file = model;
    const Comparison c = compare(model, arguments, context, progress);
    if (arguments.shown.json) {
      models.push_back(comparison_json(c));
    } else {
      print_result(comparison_text(c));
      flush_results();
    }
  }
  if (arguments.shown.json) {
    const oclc_device_info d = context.device();
    const json document = {
        {"schema", 1},
        {"kind", "bench"},
        {"version", oclc_version()},
        {"device", {{"name", d.name}, {"driver", d.driver}, {"version", d.version}, {"compute_units", d.compute_units}}},
        {"models", models}};
    print_result(document.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  }
  return 0;
}

}  // namespace oclc::tool

// oclc MODEL.onnx -o plan.bin: the command without a name.
#include <fmt/format.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "compiler/ir/text.h"
#include "compiler/training/refittable.h"
#include "compiler/training/training.h"
#include "runtime/package/writer.h"
#include "tools/oclc/add_binaries.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/emit.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/interrupt.h"
#include "tools/oclc/options.h"
#include "tools/oclc/plan_view.h"
#include "tools/oclc/report.h"

namespace oclc::tool {

const std::string_view kCompileHelp =
    R"(usage: oclc MODEL.onnx -o plan.bin [options]      compile a model ("-": standard input)
       oclc bench MODEL...                        fused beside unfused, timed on a device
       oclc cache list|prune|clear                binaries of programs that were kept
       oclc check-gradients MODEL                 gradients beside finite differences, on the host
       oclc check-op FILE                         operators of your own, beside reference and finite differences
       oclc conformance DIR...                    ONNX's backend test cases, compiled, run and compared
       oclc devices [--targets]                   OpenCL devices, or the targets known
       oclc info FILE                             what a model or a plan holds
       oclc new-op DOMAIN.NAME                    a file with an operator to begin with
       oclc refit PLAN WEIGHTS -o FILE            new weights in a plan that was compiled with --refit
       oclc tune MODEL --db FILE                  times tiles and strategies on a device, for --tuned FILE
       oclc export-onnx --model M --state C -o F  the model with the trained weights of a checkpoint

Model
  --dim N=4                bind a symbolic dimension (repeatable); others stay symbolic in the plan
  --typical N=8            what a dimension that stays symbolic will often be: costs are reckoned with it (repeatable)
  --shape x=1x3x224x224    fix an input's shape (repeatable)
  --value sr=16000         an input's value, known when compiling; it is no input of the plan (repeatable; numbers apart by commas)
  --length x=2             elements of an input that is a sequence: inputs x.0, x.1; `none`: an empty optional
  --carry OUT=IN[,state]   output OUT of a run is input IN of the next, kept on the device; `state`: it is no output then (repeatable)
  --op FILE                operators of your own, for nodes outside of ONNX (repeatable); see docs/custom_operators.md
  --refit                  keep the weights apart, so that oclc refit and a session can change them; runs are slower
  --metadata NAME=TEXT     a property of the model that the plan keeps, beside those of an ONNX file (repeatable)
  --external-data-dir DIR  folder of the model's external data (default: the model's)
  --allow-symlinks, --allow-newer-opset   external data behind symbolic links; operator sets newer than the newest known
Compilation
  --target NAME            compile for this target; no device is needed (default: the device found, else cpu)
  -d, --device SEL         compile for this device: index | P:D | part of its name | cpu | gpu
  --disable PASS[,PASS]    switch passes off; `fuse` gives one kernel an operator
  --conv STRATEGY, --gemm ENGINE     auto | im2col | implicit | direct | winograd; own | clblast
  --precision CONTRACT     strict | fp32 | fast | tf32 | bf16 (default: fp32)
  --subnormals keep|flush  flush: numbers below 1.2e-38 may be 0; for values that decay from run to run, slow on some processors
  --tuned FILE             take tiles and strategies that oclc tune found best, where the database has them
Training
  --train LOSS[,KEY=NUMBER...]       add the entries train_step and eval_step: cross_entropy, nll, mse, l1, huber, bce_with_logits,
                           or output: the model's own output is the loss
  --optimizer NAME[,KEY=NUMBER...]   sgd, adam, adamw, nadam, adagrad, rmsprop, lion (default: sgd,lr=0.01)
  --train-output NAME                the output that the loss reads (default: the first)
  --accumulate, --init, --train-seed N   add the entries accumulate_step, init (parameters drawn anew); seed of dropout and init
  --mixed f16|bf16         activations and their gradients in 16 bits; f16 scales the loss: f16[,scale=65536,growth_interval=2000]
  --recompute none|cheap|MIB         compute elementwise values again for the backward pass: all, or as the arena needs to fit
  --freeze PREFIX                    parameters whose names begin so keep their values (repeatable)
Output
  -o, --output FILE        the plan; "-": standard output
  --binaries-for DEVICE    put what this device's driver makes of the programs into the plan, for `oclrun --use-binaries`
  --stop-after STAGE       print that stage and stop: graph | passes | kernels | schedule | codegen | plan
  --emit-dir DIR           write every kernel's source, the graph, the kernels and the memory plan as files
  --report                 one row a node of the model: the kernel it is in, and why it was not fused further
  --list-ops, --json       operators of the model, supported or not; results as JSON
Messages
  -v, --verbose; -q, --quiet         notes, and constants in full in --stop-after; no warnings, no progress, no summary
  --color auto|always|never, --progress auto|none|json
  --version, --man, --completion bash|zsh|fish, -h, --help   a page or a script of all commands; each has its own help
)";

namespace {

using nlohmann::json;

struct CompileArguments {
  std::string model, output, stop_after, emit_dir, binaries_for;
  std::string loss, optimizer = "sgd", prediction;
  std::vector<std::string> frozen, carries, metadata;
  std::uint32_t seed = 0;
  bool accumulate = false, init = false, refit = false;
  std::string recompute = "none", mixed;
  std::optional<double> recompute_mebibytes;
  bool report = false, list_ops = false;
  OutputOptions shown;
  ReadOptions read;
  BuildOptions build;
};

void print_json(const json& document) { print_result(document.dump(2, ' ', false, json::error_handler_t::replace) + "\n"); }

// Exit code 4 if an operator is not supported.
int list_operators(const CompileArguments& arguments) {
  const std::vector<OpUse> uses = read_ops(arguments.model, import_options(arguments.read));
  const bool all = std::all_of(uses.begin(), uses.end(), [](const OpUse& use) { return use.supported; });
  if (arguments.shown.json) {
    json list = json::array();
    for (const OpUse& use : uses)
      list.push_back({{"domain", use.domain},
                      {"op", use.op},
                      {"opset", use.opset},
                      {"count", use.count},
                      {"supported", use.supported},
                      {"first_nodes", use.first_nodes}});
    print_json({{"schema", 1}, {"kind", "operators"}, {"model", arguments.model}, {"supported", all}, {"operators", list}});
  } else {
    print_result(fmt::format("{:32} {:>5} {:>7}  {:11}  {}\n", "operator", "opset", "nodes", "supported", "first nodes"));
    for (const OpUse& use : uses) {
      const std::string name = use.domain.empty() ? use.op : use.domain + "." + use.op;
      print_result(fmt::format("{:32} {:>5} {:>7}  {:11}  {}\n", name, use.opset, use.count, use.supported ? "yes" : "NO",
                               fmt::join(use.first_nodes, ", ")));
    }
  }
  return static_cast<int>(all ? ExitCode::good : ExitCode::unsupported);
}

// Before time is spent on compiling.
void check_output(const std::string& output) {
  if (output.empty() || output == "-") return;
  std::error_code error;
  const std::filesystem::path path(output);
  if (std::filesystem::is_directory(path, error)) io_error(output, "cannot write the plan", EISDIR);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, error)) io_error(output, "cannot write the plan", ENOENT);
}

int print_graph_stage(Module& module, const CompileArguments& arguments, const CompileOptions& options) {
  if (arguments.stop_after == "passes") run_pipeline(module, options);
  print_result(print_module(module, console().verbose ? TextOptions{INT64_MAX} : TextOptions{}));
  return 0;
}

std::string stage_text(const Compiled& compiled, std::string_view stage) {
  if (stage == "kernels" || stage == "schedule") return compiled.schedule.text();
  if (stage == "plan") return PlanView(*plan::GetPlan(compiled.plan.metadata.data())).text();
  std::string text;
  for (const GeneratedFile& file : compiled.plan.files) text += fmt::format("// {}.cl\n{}\n", file.name, file.source);
  return text;
}

struct Summary {
  std::string output;
  std::size_t kernels = 0;
  int launches = 0, copies = 0;
  std::uint64_t arena_bytes = 0, live_bytes = 0, constant_bytes = 0;
  bool sized = true;  // the arena's bytes are those at `at`
  SymbolValues at;
  double seconds = 0;
};

std::string summary_line(const Summary& s) {
  const std::string sizes = s.at.empty() ? "" : " at " + dims_text(s.at);
  const std::string arena = s.sized ? size_text(static_cast<double>(s.arena_bytes)) + sizes : "of no size at small dimensions";
  return fmt::format("{}: {} kernels, {} launches, arena {}, constants {}, compiled in {:.2f} s\n",
                     s.output.empty()  ? "no plan written"
                     : s.output == "-" ? "standard output"
                                       : s.output,
                     s.kernels, s.launches, arena, size_text(static_cast<double>(s.constant_bytes)), s.seconds);
}

json summary_json(const Summary& s, const Target& target) {
  return {{"schema", 1},
          {"kind", "compilation"},
          {"output", s.output},
          {"target", target.name},
          {"kernels", s.kernels},
          {"launches", s.launches},
          {"copies", s.copies},
          {"arena_bytes", s.arena_bytes},
          {"live_bytes", s.live_bytes},
          {"constant_bytes", s.constant_bytes},
          {"dims", s.at},
          {"seconds", s.seconds}};
}

std::uint64_t largest_arena(const BuiltPlan& plan) {
  const PlanView view(*plan::GetPlan(plan.metadata.data()));
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < view.entries(); ++i) most = std::max(most, view.figures(i, view.bind({})).memory.arena_bytes);
  return most;
}

// Compiles with as little computed again as brings the arena below a number of MiB: first large values alone, then smaller
// ones.
Compiled compile_within(double mebibytes_wanted, const std::function<std::shared_ptr<Module>()>& make_module,
                        CompileOptions options) {
  for (const std::int64_t smallest : {kRecomputeNone, std::int64_t{16} << 20, std::int64_t{4} << 20, std::int64_t{1} << 20,
                                      std::int64_t{1} << 18, std::int64_t{0}}) {
    options.recompute_bytes = smallest;
    std::shared_ptr<Module> module = make_module();
    if (!module->symbols.empty())
      usage_error(fmt::format("--recompute {} needs the sizes of all dimensions: give --dim {}=SIZE", mebibytes_wanted,
                              module->symbols[0].text()));
    Compiled compiled = compile(std::move(module), options);
    const auto arena = static_cast<double>(largest_arena(compiled.plan));
    if (arena <= mebibytes_wanted * 1024 * 1024) return compiled;
    if (smallest != 0) continue;
    throw CompileError({.stage = "passes",
                        .wanted = fmt::format("an arena of at most {} MiB", mebibytes_wanted),
                        .found = fmt::format("{} with all cheap values computed again", size_text(arena)),
                        .advice = "a smaller batch",
                        .exit_code = ExitCode::unsupported});
  }
  throw InternalError("no level of recomputation");
}

TrainingOptions training_options(const CompileArguments& arguments) {
  return {parse_loss(arguments.loss),
          parse_optimizer(arguments.optimizer),
          arguments.prediction,
          arguments.frozen,
          arguments.seed,
          arguments.accumulate,
          arguments.init,
          arguments.mixed.empty() ? NamedNumbers() : parse_mixed(arguments.mixed),
          [](const std::string& text) { print_warning(text); }};
}

// All but the seconds.
Summary summary_of(const Compiled& compiled, const PlanView& view, const std::string& output) {
  Summary summary;
  summary.output = output;
  summary.kernels = compiled.plan.files.size();
  summary.launches = compiled.plan.launches;
  summary.copies = compiled.plan.copies;
  const std::optional<SymbolValues> sizes = view.small_sizes();
  summary.at = sizes.value_or(view.bind({}));
  summary.sized = sizes.has_value();
  summary.constant_bytes = compiled.plan.constants.bytes();
  for (std::uint32_t i = 0; sizes && i < view.entries(); ++i) {
    const package::EntryMemory memory = view.figures(i, summary.at).memory;
    summary.arena_bytes = std::max(summary.arena_bytes, memory.arena_bytes);
    summary.live_bytes = std::max(summary.live_bytes, memory.live_bytes);
  }
  return summary;
}

void print_compiled(const CompileArguments& arguments, const Compiled& compiled, const std::vector<SourceNode>& sources,
                    const Summary& summary, const Target& target) {
  std::vector<ReportRow> rows;
  if (arguments.report) rows = report_rows(sources, compiled);
  if (arguments.shown.json) {
    json document = summary_json(summary, target);
    if (arguments.report) {
      document["report"] = report_json(rows);
      document["contractions"] = contractions_json(compiled.contractions);
    }
    print_json(document);
    return;
  }
  if (arguments.report) print_result(report_text(rows) + contractions_text(compiled.contractions));
  if (!console().quiet) print_result(summary_line(summary));
}

int compile_model(const CompileArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  Progress progress(arguments.shown.progress_form());
  ImportOptions import = import_options(arguments.read);
  TrainingOptions training;
  if (!arguments.loss.empty()) training = training_options(arguments);
  import.training = arguments.refit || !arguments.loss.empty();
  progress.stage("device");
  CompileOptions options = compile_options(arguments.build, progress);
  options.report = arguments.report;
  options.stop_after = arguments.stop_after;
  if (arguments.recompute == "cheap") options.recompute_bytes = 0;
  for (const MixedRow& row : mixed_types()) {
    if (row.name == training.mixed.name) options.mixed = row.storage;
  }
  check_output(arguments.output);
  progress.stage("graph");
  const auto make_module = [&] {
    std::shared_ptr<Module> made = read_model(arguments.model, import);
    if (arguments.refit) make_refittable(*made);
    if (!arguments.loss.empty()) options.limits = build_training(*made, training);
    carry_outputs(*made, parse_carries(arguments.carries));
    set_metadata(*made, arguments.metadata);
    return made;
  };
  std::shared_ptr<Module> module = make_module();
  if (arguments.stop_after == "graph" || arguments.stop_after == "passes")
    return print_graph_stage(*module, arguments, options);
  std::vector<SourceNode> sources;
  if (arguments.report) sources = source_nodes(*module);
  const Compiled compiled = arguments.recompute_mebibytes ? compile_within(*arguments.recompute_mebibytes, make_module, options)
                                                          : compile(std::move(module), options);
  if (!arguments.stop_after.empty()) {
    print_result(stage_text(compiled, arguments.stop_after));
    return 0;
  }

  const PlanView view(*plan::GetPlan(compiled.plan.metadata.data()));
  Summary summary = summary_of(compiled, view, arguments.output);
  progress.stage("write");
  {
    const FilesBeingWritten guard;
    if (!arguments.emit_dir.empty()) emit_files(arguments.emit_dir, compiled, view, summary.at);
    if (!arguments.output.empty())
      package::write_package(arguments.output, std::as_bytes(std::span(compiled.plan.metadata)), compiled.plan.constants,
                             package::MetadataAs::shorter);
  }
  if (!arguments.binaries_for.empty()) {
    progress.stage("binaries");
    add_binaries(arguments.output, arguments.binaries_for, import.typical);
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print_compiled(arguments, compiled, sources, summary, options.target);
  return 0;
}

}  // namespace

namespace {

double mebibytes_given(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > 0))
    usage_error(fmt::format("wanted --recompute none|cheap|MIB, found '{}'", text));
  return number;
}

}  // namespace

int compile_command(int argc, char** argv, std::string& file) {
  CompileArguments arguments;
  CLI::App app;
  app.set_version_flag("--version", std::string("oclc ") + oclc_version());
  app.add_option("model", arguments.model);
  app.add_option("-o,--output", arguments.output);
  app.add_option("--stop-after", arguments.stop_after);
  app.add_option("--binaries-for", arguments.binaries_for);
  app.add_option("--emit-dir", arguments.emit_dir);
  app.add_flag("--report", arguments.report);
  app.add_flag("--list-ops", arguments.list_ops);
  app.add_option("--carry", arguments.carries)->allow_extra_args(false);
  app.add_flag("--refit", arguments.refit);
  app.add_option("--metadata", arguments.metadata)->allow_extra_args(false);
  app.add_option("--train", arguments.loss);
  app.add_option("--optimizer", arguments.optimizer);
  app.add_option("--train-output", arguments.prediction);
  app.add_option("--freeze", arguments.frozen);
  app.add_option("--train-seed", arguments.seed);
  app.add_flag("--accumulate", arguments.accumulate);
  app.add_flag("--init", arguments.init);
  app.add_option("--mixed", arguments.mixed);
  app.add_option("--recompute", arguments.recompute);
  add_output_options(app, arguments.shown);
  add_read_options(app, arguments.read);
  add_build_options(app, arguments.build);
  if (parse(app, argc, argv, kCompileHelp)) return 0;
  if (arguments.loss.empty()) {
    for (const char* option :
         {"--optimizer", "--train-output", "--train-seed", "--accumulate", "--init", "--freeze", "--recompute", "--mixed"}) {
      if (app.count(option)) usage_error(fmt::format("{} means something with --train LOSS only", option));
    }
  }
  if (!arguments.carries.empty() && !arguments.loss.empty()) usage_error("--carry does not go with --train");
  if (arguments.refit && !arguments.loss.empty()) usage_error("--refit does not go with --train, whose plans have parameters");
  if (arguments.recompute != "none" && arguments.recompute != "cheap")
    arguments.recompute_mebibytes = mebibytes_given(arguments.recompute);
  if (arguments.model.empty()) usage_error("wanted a model file, found none");
  file = arguments.model == "-" ? "standard input" : arguments.model;
  console().results_to_stderr = arguments.output == "-";
  if (!arguments.stop_after.empty() &&
      std::find(std::begin(kStages), std::end(kStages), arguments.stop_after) == std::end(kStages))
    usage_error(fmt::format("wanted --stop-after {}, found '{}'", fmt::join(kStages, "|"), arguments.stop_after));
  if (arguments.list_ops) return list_operators(arguments);
  if (!arguments.binaries_for.empty() && (arguments.output.empty() || arguments.output == "-"))
    usage_error("--binaries-for: wanted -o FILE with it");
  if (arguments.output.empty() && arguments.stop_after.empty() && arguments.emit_dir.empty() && !arguments.report)
    usage_error("wanted -o FILE, --emit-dir, --stop-after, --report or --list-ops");
  return compile_model(arguments);
}

}  // namespace oclc::tool

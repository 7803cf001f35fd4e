// oclc tune: times choices for the contractions of a model on a device and keeps them.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "compiler/support/error.h"
#include "compiler/support/median.h"
#include "compiler/tuning/calibration.h"
#include "compiler/tuning/kernel_time.h"
#include "compiler/tuning/search.h"
#include "compiler/tuning/sweep.h"
#include "runtime/package/writer.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/commands/calibrate.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/interrupt.h"
#include "tools/oclc/measurer.h"
#include "tools/oclc/options.h"
#include "tools/oclc/timed_plan.h"
#include "tools/oclc/tuned.h"

namespace oclc::tool {

const std::string_view kTuneHelp = R"(usage: oclc tune MODEL --db FILE [options]
       oclc tune --product MxKxN... --db FILE [options]
       oclc tune --sweep N [--seed S] --db FILE [options]
       oclc tune --calibrate [--sweep N [--seed S]] --db FILE [options]
       oclc tune --db FILE --import F | --export F
Times strategies and tiles for the convolutions and products of a model (or for products of given sizes) on a device, compares all
results with the host reference, and keeps every trial in an SQLite database, which `oclc MODEL --tuned FILE` takes choices from.
Trials found there are not made again: an interrupted search goes on where it stopped. Beside each time stands the cost models'
estimate, with the rates that --calibrate kept there.

  --db FILE                the database (made if need be)
  --product MxKxN          a product [M, K] x [K, N] with constant right side (repeatable)
  --sweep N                N contractions as networks at large have them, drawn by --seed S (default: 1); the summary says how much
                           slower than the best found the cost models' choices are, both timed again in turn
  --calibrate              measure the device's rates by small kernels, print them beside the target's, and keep them:
                           --tuned FILE takes them for estimates; with --sweep N also fit a cost model of kernel execution
                           times to N contractions of all sizes (200 take some minutes)
  --budget S               seconds for one operator (default: 60)
  --trials N               trials of one operator, at most (default: as the budget allows)
  --compare-with-first     compare results with those of the cost model's choice, not with the host reference, which takes seconds
                           for large operators
  --export F, --import F   all trials as JSON lines; "-": standard output or input
  --dim N=4                sizes of symbolic dimensions; others are 1
  --shape x=1x3x224x224    fix an input's shape
  -d, --device SEL         index | P:D | part of its name | cpu | gpu (default: the device found)
  --disable, --conv, --gemm, --precision, --subnormals, --op, --external-data-dir, --allow-symlinks, --allow-newer-opset   see oclc --help
  --json                   results as JSON
  -v  -q  --color auto|always|never  --progress auto|none|json  -h, --help
)";

namespace {

using nlohmann::json;

constexpr int kRoundsOfSweep = 2;

struct TuneArguments {
  std::string model, database, exported, imported;
  std::vector<std::string> products;
  double budget = 60;
  int sweep = 0;
  std::uint32_t seed = 1;
  int trials = 1 << 20;
  bool calibrate = false, with_first = false;
  OutputOptions shown;
  ReadOptions read;
  BuildOptions build;
};

TuningJob product_of(const std::string& text) {
  std::int64_t sizes[3] = {};
  int end = 0;
  if (std::sscanf(text.c_str(), "%ldx%ldx%ld%n", &sizes[0], &sizes[1], &sizes[2], &end) != 3 ||
      static_cast<std::size_t>(end) != text.size() ||
      std::any_of(std::begin(sizes), std::end(sizes), [](std::int64_t s) { return s < 1 || s > 1 << 20; }))
    usage_error(fmt::format("wanted --product MxKxN with sizes from 1 to {}, found '{}'", 1 << 20, text));
  return product_job(sizes[0], sizes[1], sizes[2]);
}

std::vector<TuningJob> jobs_of(const TuneArguments& arguments, const CompileOptions& options) {
  std::vector<TuningJob> jobs;
  for (const std::string& product : arguments.products) jobs.push_back(product_of(product));
  for (TuningJob& job : sweep_jobs(arguments.sweep, arguments.seed)) jobs.push_back(std::move(job));
  if (arguments.model.empty()) return jobs;
  ImportOptions import = import_options(arguments.read);
  ImportOptions silent = import;
  silent.warn = nullptr;
  const std::shared_ptr<Module> open = read_model(arguments.model, silent);
  for (const Expr& symbol : open->symbols)
    import.dims.emplace(*symbol.symbol_name(), std::max<std::int64_t>(symbol.lower(), 1));
  const std::shared_ptr<Module> module = read_model(arguments.model, import);
  CompileOptions early = options;
  for (const char* late : {"choose_convolution", "assign_layouts"}) early.disabled.emplace_back(late);
  run_pipeline(*module, early);
  for (TuningJob& job : tuning_jobs(*module)) jobs.push_back(std::move(job));
  return jobs;
}

json row_json(const TunedDevice& device, const Trial& trial) {
  return {{"schema", 1},       {"device", device.name},  {"family", device.family},  {"vendor", device.vendor},
          {"key", trial.key},  {"choice", trial.choice}, {"seconds", trial.seconds}, {"modelled", trial.modelled},
          {"note", trial.note}};
}

int export_rows(const TuningDatabase& database, const std::string& file) {
  std::string text;
  const auto rows = database.all();
  for (const auto& [device, trial] : rows)
    text += row_json(device, trial).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (file == "-") {
    print_result(text);
    return 0;
  }
  const FilesBeingWritten guard;
  package::write_file(file, std::as_bytes(std::span(text)));
  if (!console().quiet) print_result(fmt::format("{}: {} trials\n", file, rows.size()));
  return 0;
}

int import_rows(TuningDatabase& database, const std::string& file) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file);
    if (!opened) io_error(file, "cannot read trials", errno);
  }
  std::istream& in = file == "-" ? std::cin : opened;
  std::vector<std::pair<TunedDevice, Trial>> rows;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    const json row = json::parse(line, nullptr, false);
    try {
      if (row.at("schema").get<int>() != 1) throw json::other_error::create(501, "another schema", nullptr);
      rows.push_back(
          {{row.at("device"), row.at("family"), row.at("vendor")},
           {row.at("key"), row.at("choice").get<TunedChoice>(), row.at("seconds"), row.at("modelled"), row.at("note")}});
    } catch (const json::exception&) {
      throw CompileError(
          {.stage = "tuning",
           .wanted = fmt::format("line {} of '{}' to be a trial as `oclc tune --export` writes it", number, file),
           .found = line.substr(0, 80)});
    }
  }
  const FilesBeingWritten guard;
  for (const auto& [device, trial] : rows) database.add(device, trial);
  if (!console().quiet) print_result(fmt::format("{} trials from {}\n", rows.size(), file));
  return 0;
}

// On a terminal one line that changes; else a line every ten seconds.
class SearchLine {
 public:
  explicit SearchLine(ProgressForm form)
      : form_(form), terminal_(::isatty(STDERR_FILENO) != 0), begin_(std::chrono::steady_clock::now()), last_(begin_) {}
  ~SearchLine() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }

  void show(const TuningProgress& p, std::size_t jobs, double budget) {
    if (form_ == ProgressForm::none) return;
    const auto now = std::chrono::steady_clock::now();
    const double since = std::chrono::duration<double>(now - last_).count();
    if (since < (form_ == ProgressForm::json ? 0 : terminal_ ? 0.2 : 10)) return;
    last_ = now;
    const double elapsed = std::chrono::duration<double>(now - begin_).count();
    // The present operator at its rate so far, the others as this or as the mean of those done.
    const double rate = p.job_elapsed_seconds / std::max(1, p.trial);
    const double own = std::min(budget, rate * std::max(p.planned, p.trial)),
                 mean = p.job > 0 ? (elapsed - p.job_elapsed_seconds) / static_cast<double>(p.job) : own;
    const double left = std::max(0.0, own - p.job_elapsed_seconds) + mean * static_cast<double>(jobs - p.job - 1);
    if (form_ == ProgressForm::json) {
      fmt::print(
          stderr,
          "{{\"stage\": \"tune\", \"operator\": {}, \"operators\": {}, \"trial\": {}, \"planned\": {}, \"model_ms\": {:.6g}, "
          "\"best_ms\": {:.6g}, \"elapsed_s\": {:.1f}, \"eta_s\": {:.0f}}}\n",
          p.job + 1, jobs, p.trial, p.planned, p.modelled_seconds * 1e3, p.best_seconds * 1e3, elapsed, left);
      return;
    }
    fmt::print(stderr,
               "{}oclc: tune {}/{}, trial {} of {}: best {:.3f} ms, the model's {:.3f} ms; {:.0f} s, about {:.0f} s left{}",
               terminal_ ? "\r\033[K" : "", p.job + 1, jobs, p.trial, std::max(p.planned, p.trial), p.best_seconds * 1e3,
               p.modelled_seconds * 1e3, elapsed, left, terminal_ ? "" : "\n");
    std::fflush(stderr);
    shown_ = terminal_;
  }
  void wipe() {
    if (shown_) fmt::print(stderr, "\r\033[K");
    shown_ = false;
  }

 private:
  ProgressForm form_;
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point begin_, last_;
};

// The least value that nine tenths of them do not exceed.
double ninth_decile(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() * 9 + 9) / 10 - 1];
}

// What is said of all operators together.
struct TuneSummary {
  std::vector<double> ratios, errors;  // of the cost models' choices to the best found, and of estimates
  double worst = 0;
  std::string worst_operator;

  void add(const JobResult& r, const std::string& label) {
    if (r.best_seconds <= 0) return;
    const double ratio = r.modelled_seconds / r.best_seconds;
    ratios.push_back(ratio);
    if (ratio > worst) worst = ratio, worst_operator = label;
    if (r.estimated_seconds > 0) errors.push_back(std::abs(r.estimated_seconds / r.modelled_seconds - 1));
  }
  json as_json() const {
    return {{"median_ratio", median(ratios)},
            {"ninth_decile_ratio", ninth_decile(ratios)},
            {"worst_ratio", worst},
            {"worst_operator", worst_operator},
            {"median_estimate_error", median(errors)}};
  }
  std::string as_text(const std::string& database) const {
    return fmt::format(
        "{}: median over {} operators: what the cost model takes is {:.0f} % slower than the best found; 90 % of them at most "
        "{:.0f} %, the worst {:.0f} % ({}); estimates are {:.0f} % off\n",
        database, ratios.size(), (median(ratios) - 1) * 100, (ninth_decile(ratios) - 1) * 100, (worst - 1) * 100,
        worst_operator, median(errors) * 100);
  }
};

int tune(const TuneArguments& arguments, TuningDatabase& database) {
  const rt::Context context = profiling_context(arguments.build.device);
  CompileOptions options = options_for(context, arguments.build);
  const TunedDevice device = tuned_device(context.device(), options.target);
  const std::vector<Trial> known = database.trials(device);
  use_rates(known, options.target);
  const KernelTimeModel kernel_times = kernel_time_model(known);
  const std::vector<TuningJob> jobs = jobs_of(arguments, options);
  if (jobs.empty()) {
    print_result("nothing to tune: no convolution or product of known sizes\n");
    return 0;
  }
  Measurer measurer(context, options, arguments.with_first ? ComparedWith::first : ComparedWith::host);
  // Ratios of a sweep are its result.
  TuningOptions tuning{
      {options.target, options.conv}, arguments.budget, arguments.trials, arguments.sweep > 0 ? kRoundsOfSweep : 0, [&] {
        measurer.forget();
      }};
  if (!arguments.shown.json)
    print_result(fmt::format("device: {} ({}); {} operators\n{:>11} {:>10} {:>10} {:>7} {:>7}  operator\n", device.name,
                             device.family, jobs.size(), "estimate ms", "model ms", "best ms", "ratio", "trials"));
  flush_results();
  TuneSummary summary;
  json rows = json::array();
  SearchLine line(arguments.shown.progress_form());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    JobResult r = search(
        jobs[i], tuning, known, std::ref(measurer),
        [&](const Trial& trial) {
          const FilesBeingWritten guard;
          database.add(device, trial);
        },
        [&](TuningProgress p) {
          p.job = i;
          line.show(p, jobs.size(), arguments.budget);
        });
    r.estimated_seconds = kernel_times.seconds(r.kernels);
    line.wipe();
    summary.add(r, jobs[i].label);
    json kernels = json::array();
    for (const TimedKernel& k : r.kernels)
      kernels.push_back({{"strategy", k.strategy},
                         {"estimate_ms", k.seconds * 1e3},
                         {"flops", k.flops},
                         {"bytes", k.bytes},
                         {"results", k.results},
                         {"terms", k.terms},
                         {"has_taps", k.has_taps}});
    if (arguments.shown.json)
      rows.push_back({{"operator", jobs[i].label},
                      {"estimate_ms", r.estimated_seconds * 1e3},
                      {"model_ms", r.modelled_seconds * 1e3},
                      {"best_ms", r.best_seconds * 1e3},
                      {"trials", r.trials},
                      {"known", r.known},
                      {"refused", r.refused},
                      {"kernels", kernels},
                      {"best", r.best}});
    else
      print_result(fmt::format("{:>11.4f} {:>10.4f} {:>10.4f} {:>7.2f} {:>7}  {}{}{}\n", r.estimated_seconds * 1e3,
                               r.modelled_seconds * 1e3, r.best_seconds * 1e3,
                               r.best_seconds > 0 ? r.modelled_seconds / r.best_seconds : 0, r.trials + r.known, jobs[i].label,
                               r.refused ? fmt::format(", {} refused", r.refused) : "",
                               console().verbose && !r.best.empty() ? "\n" + std::string(40, ' ') + r.best : ""));
    flush_results();
  }
  if (!arguments.shown.json) {
    print_result(summary.as_text(arguments.database));
    return 0;
  }
  json result{{"schema", 1},           {"kind", "tuning"},        {"version", oclc_version()},
              {"device", device.name}, {"family", device.family}, {"precision", options.precision},
              {"operators", rows}};
  result.update(summary.as_json());
  print_result(result.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  return 0;
}

// A damaged file is put aside.
std::unique_ptr<TuningDatabase> open_database(const std::string& file) {
  try {
    return std::make_unique<TuningDatabase>(file, TuningDatabase::Use::write);
  } catch (const CompileError& error) {
    if (error.parts().exit_code != ExitCode::bad_model) throw;
    print_warning(fmt::format("{}; it is now {}.bad", error.what(), file));
    std::filesystem::rename(file, file + ".bad");
    return std::make_unique<TuningDatabase>(file, TuningDatabase::Use::write);
  }
}

}  // namespace

int tune_command(int argc, char** argv, std::string& file) {
  TuneArguments arguments;
  CLI::App app;
  app.add_option("model", arguments.model);
  app.add_option("--db", arguments.database);
  app.add_option("--product", arguments.products)->allow_extra_args(false);
  app.add_option("--sweep", arguments.sweep)->check(command_line::above_zero());
  app.add_option("--seed", arguments.seed);
  app.add_option("--budget", arguments.budget)->check(command_line::above_zero());
  app.add_option("--trials", arguments.trials)->check(command_line::above_zero());
  app.add_flag("--calibrate", arguments.calibrate);
  app.add_flag("--compare-with-first", arguments.with_first);
  app.add_option("--export", arguments.exported);
  app.add_option("--import", arguments.imported);
  add_output_options(app, arguments.shown);
  add_read_options(app, arguments.read);
  add_build_options(app, arguments.build);
  if (parse(app, argc, argv, kTuneHelp)) return 0;
  if (arguments.database.empty()) usage_error("wanted --db FILE");
  if (!arguments.build.target.empty()) usage_error("wanted --device, found --target: choices are timed on a device");
  const bool moves = !arguments.exported.empty() || !arguments.imported.empty();
  if (!moves && !arguments.calibrate && arguments.model.empty() && arguments.products.empty() && arguments.sweep == 0)
    usage_error("wanted a model file, --product MxKxN, --sweep N or --calibrate, found none");
  file = arguments.model.empty() ? arguments.database : arguments.model;
  if (!arguments.exported.empty())
    return export_rows(TuningDatabase(arguments.database, TuningDatabase::Use::read), arguments.exported);
  const std::unique_ptr<TuningDatabase> database = open_database(arguments.database);
  if (!arguments.imported.empty()) return import_rows(*database, arguments.imported);
  if (arguments.calibrate)
    return calibrate_command(arguments.build, arguments.shown, {arguments.sweep, arguments.seed}, *database);
  return tune(arguments, *database);
}

}  // namespace oclc::tool

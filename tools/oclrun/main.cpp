// oclrun: executes a plan. What it does is read here from top to bottom; exit codes are those of all our tools.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/package/text/unicode.h"
#include "tools/command_line/bytes_text.h"
#include "tools/command_line/cpu_threads.h"
#include "tools/io/npy.h"
#include "tools/oclrun/device_choice.h"
#include "tools/oclrun/export.h"
#include "tools/oclrun/inputs.h"
#include "tools/oclrun/options.h"
#include "tools/oclrun/print.h"
#include "tools/oclrun/progress.h"
#include "tools/oclrun/runner.h"
#include "tools/oclrun/start.h"
#include "tools/oclrun/steps.h"
#include "tools/oclrun/streams.h"
#include "tools/oclrun/timing.h"
#include "tools/oclrun/training/train.h"
#include "tools/oclrun/training/verify_training.h"
#include "tools/oclrun/verify.h"

namespace oclc::oclrun {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

enum ExitCode {
  kGood = 0,
  kInternal = 1,
  kUsage = 2,
  kBadInput = 3,
  kUnsupported = 4,
  kDevice = 5,
  kIo = 6,
  kVerifyFailed = 7,
  kInterrupted = 130
};

// Set by an interrupt while a training loop looks at it; otherwise an interrupt ends the program.
volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t loop_looks = 0;

struct ContextUser {
  bool quiet;
  Progress* progress;
};

void on_message(void* user, oclc_severity severity, const char* text) {
  if (!static_cast<ContextUser*>(user)->quiet) tell(severity == OCLC_WARNING ? "warning" : "note", text);
}

void on_progress(void* user, std::uint32_t done, std::uint32_t total) {
  if (auto* progress = static_cast<ContextUser*>(user)->progress) progress->told(done, total);
}

json device_json(const oclc_device_info& d) {
  return {{"name", d.name},
          {"driver", d.driver},
          {"version", d.version},
          {"platform", d.platform_name},
          {"compute_units", d.compute_units}};
}

json outputs_json(const Runner& runner) {
  json list = json::array();
  for (const io::Tensor& y : runner.results())
    list.push_back({{"name", y.name}, {"dtype", oclc_dtype_name(y.dtype)}, {"shape", y.shape}});
  return list;
}

json stats_json(const oclc_stats& s) {
  return {{"arena_bytes", s.arena_bytes},
          {"live_bytes", s.live_bytes},
          {"constant_bytes", s.constant_bytes},
          {"state_bytes", s.state_bytes},
          {"launches", s.launches},
          {"programs_built", s.programs_built},
          {"programs_cached", s.programs_cached},
          {"build_ms", static_cast<double>(s.build_ns) * 1e-6},
          {"upload_ms", static_cast<double>(s.upload_ns) * 1e-6},
          {"command_buffer", s.command_buffer != 0}};
}

void print_json(const json& document) {
  std::printf("%s\n", document.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

void print_verdict(const Verdict& v) {
  for (const OutputVerdict& o : v.outputs)
    std::printf("%s  output '%s'  max_abs=%.3g max_rel=%.3g  %s\n", package::shown(o.set).c_str(),
                package::shown(o.output).c_str(), o.difference.max_abs, o.difference.max_rel, o.passed ? "ok" : "WRONG");
  print(stdout, summary(v) + "\n");
}

void print_start(Runner& runner, const rt::Context& context, const StartClock& clock) {
  const oclc_stats s = runner.session().stats();
  const oclc_device_info d = context.device();
  std::fprintf(stderr, "device: %s (%s, driver %s)\n", d.name, d.version, d.driver);
  std::fprintf(stderr, "entry point: %s, %u launches, arena %s (live %s), constants %s%s\n",
               package::shown(runner.entry_name()).c_str(), s.launches, command_line::bytes_text(s.arena_bytes).c_str(),
               command_line::bytes_text(s.live_bytes).c_str(), command_line::bytes_text(s.constant_bytes).c_str(),
               s.constants_shared ? " (shared with the file)" : "");
  std::fprintf(stderr, "start: plan %.1f ms, programs %.1f ms (%s), session %.1f ms, first run %.1f ms\n",
               clock.ms_of(kPlanMark), static_cast<double>(s.build_ns) * 1e-6,
               programs_text(runner.session(), "the cache").c_str(), clock.ms_of(kSessionMark), clock.ms_of(kFirstRunMark));
}

void export_if_wanted(Runner& runner, const rt::Plan& plan, const Options& o) {
  if (o.state_to_onnx.empty()) return;
  const std::string done = export_onnx(runner.session(), plan, o.model, o.state_to_onnx);
  if (!o.quiet) tell("note", done);
}

int run_training(Runner& runner, const rt::Plan& plan, const Options& o, json document) {
  if (!o.outputs.empty() || o.print) throw UsageError{"--steps does not go with --output or --print"};
  if (!o.inputs_dir.empty()) throw UsageError{"--steps does not go with --inputs"};
  loop_looks = 1;
  const TrainResult result = train(runner, plan, o, interrupted);
  loop_looks = 0;
  export_if_wanted(runner, plan, o);
  if (o.json) {
    document["train"] = {{"steps", result.steps},
                         {"last_step", result.last},
                         {"samples_per_s", result.samples_per_second},
                         {"seconds", result.seconds},
                         {"interrupted", result.interrupted}};
    if (result.has_loss) document["train"].update({{"loss", result.loss}, {"first_loss", result.first_loss}});
    for (const auto& [name, mean] : result.means) document["train"]["means"][name] = mean;
    for (const EvalResult& e : result.evaluations) {
      document["train"]["evaluations"].push_back({{"step", e.step}, {"loss", e.loss}});
      if (e.accuracy) document["train"]["evaluations"].back()["accuracy_percent"] = *e.accuracy;
    }
    if (result.best) document["train"]["best_step"] = *result.best;
    document["train"]["stopped_early"] = result.stopped_early;
    document["memory"] = stats_json(runner.session().stats());
    print_json(document);
  } else {
    std::printf("%s\n", summary(result).c_str());
  }
  if (!result.interrupted) return kGood;
  std::fprintf(stderr, "oclrun: interrupted after step %llu%s%s\n", static_cast<unsigned long long>(result.last),
               o.save_state.empty() ? "" : ", state saved to ", o.save_state.c_str());
  return kInterrupted;
}

int run_carried_steps(Runner& runner, const Options& o, json document) {
  const Steps result = run_steps(runner, o);
  write_outputs(runner, result.outputs, o);
  if (!o.save_state.empty()) runner.session().save_state(o.save_state);
  if (o.json) {
    document["steps"] = {{"steps", result.steps}, {"us_per_step", result.us_per_step}, {"seconds", result.seconds}};
    document["memory"] = stats_json(runner.session().stats());
    std::printf("%s\n", document.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    return kGood;
  }
  if (o.print)
    for (const io::Tensor& y : result.outputs) print(stdout, tensor_text(y, *o.print));
  std::printf("%s\n", summary(result).c_str());
  return kGood;
}

std::string device_wanted(const rt::Plan& plan, const Options& o) {
  const char* of_environment = std::getenv("OCLC_DEVICE");
  if (!o.device.empty() || (of_environment && *of_environment)) return o.device;
  return device_for(plan.info().target, rt::devices());
}

bool is_profiled(const Options& o) { return !o.profile.empty() || !o.trace.empty(); }

rt::Context context_for(const Options& o, const std::string& device, ContextUser& user) {
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.device = device.c_str();
  options.profiling = is_profiled(o);
  options.memory_limit = o.memory_limit;
  options.max_host_steps = o.max_host_steps;
  options.message = on_message;
  options.progress = on_progress;
  options.user = &user;
  options.wait_for_optimized = waits_for_optimized(o);
  options.use_binaries = o.use_binaries;
  options.any_device = o.any_device;
  options.for_binaries = !o.write_binaries.empty();
  return rt::Context(options);
}

int fill_caches(const rt::Plan& plan, const rt::Context& context, const Options& o, ContextUser& user) {
  Progress progress("filling the caches");
  user.progress = &progress;
  const rt::Session kept(plan, context);  // so that all entry points share programs
  std::string done = warm(plan, context, o);
  if (!o.write_binaries.empty()) {
    context.write_binaries(plan, o.write_binaries);
    done += "; their binaries are in '" + o.write_binaries + "'";
  }
  user.progress = nullptr;
  if (!o.quiet) tell("note", done);
  return kGood;
}

int run_verification(Runner& runner, const rt::Plan& plan, const Options& o, json document) {
  Verdict verdict;
  {
    const Progress progress("verifying (drivers compile on first use)");
    verdict = runner.entry_name() == "train_step" ? verify_training(runner, plan, o.verify_dir) : verify(runner, plan, o);
  }
  document["verify"] = verdict_json(verdict);
  document["memory"] = stats_json(runner.session().stats());
  if (o.json)
    print_json(document);
  else
    print_verdict(verdict);
  return verdict.passed ? kGood : kVerifyFailed;
}

void print_run(Runner& runner, const Options& o, const Profile& profile, const StartClock& clock) {
  if (o.print)
    for (const io::Tensor& y : runner.results()) print(stdout, tensor_text(y, *o.print));
  if (o.profile == "table") print(stdout, profile_table(profile));
  if (o.profile == "csv") print(stdout, profile_csv(profile));
  if (o.profile == "json") {
    json text = profile_json(profile);
    text["start"] = start_json(clock, runner.session());
    print_json(text);
  }
}

// Runs on the inputs of the options, once or as often as is timed, and tells what came of it.
int run_inputs(Runner& runner, const rt::Plan& plan, const rt::Context& context, const Options& o, StartClock& clock,
               ContextUser& user, json document) {
  bind_from_options(runner, o);
  const bool profiled = is_profiled(o);
  const bool timed = o.runs >= 0 || o.warmup >= 0 || o.seconds > 0 || !o.percentiles.empty() || profiled || o.json;
  clock.mark("inputs");
  if (o.warmup != 0 || !timed || o.explain_start) {
    Progress progress("first run (drivers compile on first use)");
    user.progress = &progress;
    runner.run();
    user.progress = nullptr;
    clock.mark(kFirstRunMark);
  }
  if (o.verbose) print_start(runner, context, clock);
  if (o.explain_start) {
    run_until_optimized(runner, clock);
    if (!o.json) std::fprintf(stderr, "%s", start_table(clock, runner.session(), context.device().name).c_str());
  }

  Options timing = o;
  if (timing.warmup > 0) --timing.warmup;  // the first run was one of them
  Latencies latencies;
  if (timed) latencies = time_runs(runner, timing);
  Profile profile;
  if (profiled) profile = profile_runs(runner, std::clamp(o.runs, 1, 10), o.trace);
  write_outputs(runner, runner.results(), o);
  if (!o.save_state.empty()) runner.session().save_state(o.save_state);
  export_if_wanted(runner, plan, o);

  if (o.json) {
    document["dims"] = json::object();
    for (const auto& [name, value] : o.dims) document["dims"][name] = value;
    document["latency_ms"] = latency_json(latencies, o.percentiles);
    document["start_ms"] = {
        {"plan", clock.ms_of(kPlanMark)}, {"session", clock.ms_of(kSessionMark)}, {"first_run", clock.ms_of(kFirstRunMark)}};
    if (o.explain_start) document["start"] = start_json(clock, runner.session());
    document["memory"] = stats_json(runner.session().stats());
    document["outputs"] = outputs_json(runner);
    if (profiled) document["profile"] = profile_json(profile);
    print_json(document);
    return kGood;
  }
  print_run(runner, o, profile, clock);
  if (timed) std::printf("%s\n", latency_line(latencies, o.percentiles).c_str());
  return kGood;
}

int run_throughput(const rt::Plan& plan, const rt::Context& context, const Options& o, ContextUser& user) {
  std::vector<Throughput> rows;
  {
    const Progress progress("measuring (drivers compile on first use)");
    rows = measure_streams(plan, o, [&] { return context_for(o, device_wanted(plan, o), user); });
  }
  if (!o.json) print(stdout, streams_table(rows));
  if (o.json)
    print_json({{"schema", 1}, {"plan", o.plan}, {"device", device_json(context.device())}, {"streams", streams_json(rows)}});
  return kGood;
}

int run(const Options& o) {
  StartClock clock;
  const rt::Plan plan = rt::Plan::load(o.plan);
  clock.mark(kPlanMark);
  const bool carries = !carried_names(plan).empty();
  if (command_line::keep_threads_on_cores() && o.verbose)
    tell("note", "threads of PoCL stay on a core each; POCL_AFFINITY=0 lets them move");
  ContextUser user{o.quiet, nullptr};
  const rt::Context context = context_for(o, device_wanted(plan, o), user);
  clock.mark(kContextMark);
  if (o.warm || !o.write_binaries.empty()) return fill_caches(plan, context, o, user);
  if (measures_streams(o)) return run_throughput(plan, context, o, user);

  std::unique_ptr<Runner> runner;
  {
    Progress progress("building kernels");
    user.progress = &progress;
    runner = std::make_unique<Runner>(plan, context, o.steps > 0 && o.entry.empty() && !carries ? "train_step" : o.entry);
    user.progress = nullptr;
  }
  clock.mark(kSessionMark);
  check_output_names(*runner, o);
  if (!o.load_state.empty()) runner->session().load_state(o.load_state);
  runner->session().enable_nan_check(o.check_nan);

  json document = {{"schema", 1}, {"plan", o.plan}, {"entry", runner->entry_name()}, {"device", device_json(context.device())}};
  if (o.steps > 0 && carries) return run_carried_steps(*runner, o, std::move(document));
  if (o.steps > 0) return run_training(*runner, plan, o, std::move(document));
  if (!o.verify_dir.empty()) return run_verification(*runner, plan, o, std::move(document));
  return run_inputs(*runner, plan, context, o, clock, user, std::move(document));
}

int exit_code(oclc_status status) {
  switch (status) {
    case OCLC_E_INTERNAL:
      return kInternal;
    case OCLC_E_ARGUMENT:
      return kUsage;
    case OCLC_E_PLAN:
    case OCLC_E_BINDING:
      return kBadInput;
    case OCLC_E_UNSUPPORTED:
      return kUnsupported;
    case OCLC_E_IO:
      return kIo;
    case OCLC_E_NAN:
      return kVerifyFailed;
    default:
      return kDevice;
  }
}

int report(int code, const std::string& message) {
  tell("error", message);
  if (code == kInternal)
    std::fprintf(stderr, "oclrun: this is a bug of oclc; please report it with the plan and the command line\n");
  return code;
}

// Ends at once, also within a driver that compiles: files are replaced by rename, so none is left half written. A training loop
// ends after its step, unless it is the second interrupt.
void on_interrupt(int) {
  if (!loop_looks || interrupted) ::_exit(kInterrupted);
  interrupted = 1;
}

int guarded_main(int argc, char** argv) {
  try {
    const auto options = parse_options(argc, argv);
    return options ? run(*options) : kGood;
  } catch (const UsageError& error) {
    return report(kUsage, error.message + "; see oclrun --help");
  } catch (const rt::Error& error) {
    return report(exit_code(error.status()), error.what());
  } catch (const io::FileError& error) {
    return report(error.problem() == io::FileProblem::io ? kIo : kBadInput, error.what());
  } catch (const std::bad_alloc&) {
    return report(kDevice, "out of memory");
  } catch (const std::exception& error) {
    return report(kInternal, error.what());
  }
}

}  // namespace
}  // namespace oclc::oclrun

int main(int argc, char** argv) {
  ::signal(SIGINT, oclc::oclrun::on_interrupt);
  ::signal(SIGTERM, oclc::oclrun::on_interrupt);
  ::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit of its size is an error of writing
  const int code = oclc::oclrun::guarded_main(argc, argv);
  if (std::fflush(stdout) != 0 && code == 0) {
    oclc::oclrun::tell("error", "cannot write to standard output");
    return 6;
  }
  return code;
}

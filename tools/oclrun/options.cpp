#include "tools/oclrun/options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "oclc/oclc.h"

namespace oclc::oclrun {
namespace {

bool all_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::pair<std::string, std::string> split(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size())
    throw UsageError{option + ": wanted NAME=VALUE, found '" + text + "'"};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Options with an optional value take it as --name=value; `--print 5` is accepted as well.
std::vector<std::string> joined_arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    arguments.emplace_back(argv[i]);
    if (arguments.back() == "--print" && i + 1 < argc && all_digits(argv[i + 1]))
      arguments.back() += "=" + std::string(argv[++i]);
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  return arguments;
}

// Which options go with --steps and which do not.
void check_training(const Options& o) {
  const bool ends_in_table = o.log.ends_with(".csv") || o.log.ends_with(".json");
  if (!o.log.empty() && !ends_in_table) throw UsageError{"--log: wanted a file ending in .csv or .json, found '" + o.log + "'"};
  if (!o.state_to_onnx.empty() && o.model.empty())
    throw UsageError{"--state-to-onnx: wanted --model FILE.onnx with it, the model that the plan was compiled from"};
  if (o.save_every > 0 && o.save_state.empty()) throw UsageError{"--save-every: wanted --save-state FILE with it"};
  const auto both = [](bool given, const char* option, const char* other) {
    if (given) throw UsageError{std::string(option) + " does not go with " + other};
  };
  if (o.steps < 0) {
    const char* wanted = !o.data.empty() ? "--data" : o.batch > 0 ? "--batch" : o.save_every > 0 ? "--save-every" : nullptr;
    if (!wanted && !o.log.empty()) wanted = "--log";
    if (wanted) throw UsageError{std::string(wanted) + ": wanted --steps N with it"};
    return;
  }
  both(!o.verify_dir.empty(), "--steps", "--verify");
  both(o.runs >= 0 || o.warmup >= 0 || o.seconds > 0, "--steps", "--runs, --warmup or --time");
  both(!o.profile.empty() || !o.trace.empty(), "--steps", "--profile or --trace");
  both(!o.outputs.empty() || o.print, "--steps", "--output or --print");
  both(!o.inputs_dir.empty(), "--steps", "--inputs");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  std::vector<std::string> dims;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::string random;
  std::string print;
  std::string percentiles;
  double atol = 0;
  double rtol = 0;
  CLI::App app("Execute a plan that oclc compiled.", "oclrun");
  app.set_version_flag("--version", std::string("oclrun ") + oclc_version());
  app.add_option("plan", o.plan, "Plan file")->required()->type_name("PLAN");
  app.add_option("--entry", o.entry, "Entry point (default: predict)");
  app.add_option("-d,--device", o.device,
                 "Index | P:D | part of a name | cpu | gpu (default: OCLC_DEVICE, else what the plan was compiled for)");
  app.add_option("--dim", dims, "Value of a symbolic dimension")->type_name("N=4")->allow_extra_args(false);
  const std::string data = "Data";
  app.add_option("--input", inputs, "Input from a .npy or ONNX .pb file")
      ->type_name("x=FILE")
      ->group(data)
      ->allow_extra_args(false);
  app.add_option("--inputs", o.inputs_dir, "Inputs from input_*.pb of an ONNX test_data_set")->type_name("DIR")->group(data);
  CLI::Option* random_option =
      app.add_flag("--random{0}", random, "Random inputs: floats in [-1, 1), integers 0 or 1")->group(data);
  app.add_option("--output", outputs, "Write an output to a .npy file")
      ->type_name("y=FILE")
      ->group(data)
      ->allow_extra_args(false);
  CLI::Option* print_option =
      app.add_flag("--print{0}", print, "Print outputs: the first elements, or the largest K of each row")->group(data);
  app.add_option("--load-state", o.load_state, "Start from a checkpoint")->type_name("FILE")->group(data);
  app.add_option("--save-state", o.save_state, "Write a checkpoint of the state at the end")->type_name("FILE")->group(data);
  const std::string training = "Training";
  app.add_option("--steps", o.steps, "Run an entry point so many times (default: train_step), feeding batches")
      ->group(training)
      ->check(CLI::PositiveNumber);
  std::vector<std::string> samples;
  app.add_option("--data", samples, "Samples of an input, along the first axis of a .npy or .pb file")
      ->type_name("x=FILE")
      ->group(training)
      ->allow_extra_args(false);
  app.add_option("--batch", o.batch, "Samples in a batch")->group(training)->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed, "Of the order of the samples (default: 0)")->group(training);
  app.add_flag("!--no-shuffle", o.shuffle, "Samples in the order of the files")->group(training);
  std::vector<std::string> settings;
  app.add_option(
         "--set", settings,
         "Hyper-parameter: NUMBER | step:NUMBER,every=STEPS,factor=F | cosine:NUMBER,steps=STEPS[,end=NUMBER], each with "
         "[,warmup=STEPS]")
      ->type_name("lr=RULE")
      ->group(training)
      ->allow_extra_args(false);
  app.add_option("--save-every", o.save_every, "Write the checkpoint after every K steps too")
      ->type_name("K")
      ->group(training)
      ->check(CLI::PositiveNumber);
  app.add_option("--log", o.log, "Loss of each step as FILE.csv or FILE.json")->type_name("FILE")->group(training);
  app.add_option("--state-to-onnx", o.state_to_onnx, "Write --model with the trained weights")
      ->type_name("FILE")
      ->group(training);
  app.add_option("--model", o.model, "ONNX model that the plan was compiled from, for --state-to-onnx")
      ->type_name("FILE")
      ->group(training);
  const std::string check = "Verification";
  app.add_flag("--check-nan", o.check_nan, "Run launch by launch; stop at the first NaN, naming the node that made it")
      ->group(check);
  app.add_option("--verify", o.verify_dir, "Compare with output_*.pb of an ONNX test_data_set, or with cases.json")
      ->type_name("DIR")
      ->group(check);
  app.add_option("--case", o.verify_case, "Run case K of cases.json alone")->group(check)->check(CLI::NonNegativeNumber);
  CLI::Option* atol_option = app.add_option("--atol", atol, "Absolute tolerance")->group(check)->check(CLI::NonNegativeNumber);
  CLI::Option* rtol_option = app.add_option("--rtol", rtol, "Tolerance relative to the largest reference value")
                                 ->group(check)
                                 ->check(CLI::NonNegativeNumber);
  const std::string timing = "Timing";
  app.add_option("--warmup", o.warmup, "Runs before the timed ones")->group(timing)->check(CLI::NonNegativeNumber);
  app.add_option("--runs", o.runs, "Timed runs")->group(timing)->check(CLI::PositiveNumber);
  app.add_option("--time", o.seconds, "Repeat for at least so many seconds")->group(timing)->check(CLI::PositiveNumber);
  app.add_option("--percentiles", percentiles, "Further percentiles of the latency")->type_name("50,90,99")->group(timing);
  CLI::Option* profile_option =
      app.add_flag("--profile{table}", o.profile, "Time per launch: table, json or csv")->group(timing);
  app.add_option("--trace", o.trace, "Launches of one run as Chrome/Perfetto JSON")->type_name("FILE")->group(timing);
  const std::string limits = "Limits";
  app.add_option("--memory-limit", o.memory_limit, "Most bytes that the plan may take on the device")
      ->type_name("BYTES")
      ->group(limits)
      ->check(CLI::PositiveNumber);
  app.add_option("--max-host-steps", o.max_host_steps, "Most launches, trips of loops and steps of the host in a run")
      ->type_name("N")
      ->group(limits)
      ->check(CLI::PositiveNumber);
  app.add_flag("--explain-start", o.explain_start, "Where the time to the first results goes")->group(timing);
  app.add_flag("--warm", o.warm,
               "Fill the caches: run every entry point once on made-up inputs, so that no later start compiles")
      ->group(timing);
  app.add_flag("--json", o.json, "One JSON document on standard output");
  app.add_flag("-q,--quiet", o.quiet, "No progress, no notes");
  app.add_flag("-v,--verbose", o.verbose, "Device, memory and start-up times");
  try {
    app.parse(joined_arguments(argc, argv));
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return std::nullopt;
  } catch (const CLI::CallForVersion&) {
    std::printf("oclrun %s\n", oclc_version());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError{error.what()};
  }
  for (const std::string& text : dims) {
    const auto [name, value] = split("--dim", text);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      throw UsageError{"--dim: wanted NAME=NUMBER, found '" + text + "'"};
    o.dims.emplace_back(name, number);
  }
  for (const std::string& text : inputs) o.inputs.push_back(split("--input", text));
  for (const std::string& text : outputs) o.outputs.push_back(split("--output", text));
  for (const std::string& text : samples) o.data.push_back(split("--data", text));
  for (const std::string& text : settings) o.settings.push_back(split("--set", text));
  if (random_option->count() > 0) {
    if (!all_digits(random) || random.size() > 19) throw UsageError{"--random: wanted a seed, found '" + random + "'"};
    o.random = std::stoull(random);
  }
  if (print_option->count() > 0) {
    if (!all_digits(print) || print.size() > 6) throw UsageError{"--print: wanted a number, found '" + print + "'"};
    o.print = std::stoi(print);
  }
  if (atol_option->count() > 0) o.atol = atol;
  if (rtol_option->count() > 0) o.rtol = rtol;
  if (profile_option->count() > 0 && o.profile != "table" && o.profile != "json" && o.profile != "csv")
    throw UsageError{"--profile: wanted table, json or csv, found '" + o.profile + "'"};
  for (std::size_t at = 0; !percentiles.empty() && at <= percentiles.size();) {
    const std::size_t comma = std::min(percentiles.find(',', at), percentiles.size());
    double value = -1;
    const auto [end, error] = std::from_chars(percentiles.data() + at, percentiles.data() + comma, value);
    if (error != std::errc() || end != percentiles.data() + comma || value < 0 || value > 100)
      throw UsageError{"--percentiles: wanted numbers from 0 to 100 separated by commas, found '" + percentiles + "'"};
    o.percentiles.push_back(value);
    at = comma + 1;
  }
  check_training(o);
  if (o.verify_case >= 0 && o.verify_dir.empty()) throw UsageError{"--case: wanted --verify with it"};
  return o;
}

}  // namespace oclc::oclrun

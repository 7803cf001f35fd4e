#include "tools/oclrun/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "oclc/oclc.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/manual.h"
#include "tools/oclrun/help.h"
#include "tools/oclrun/progress.h"

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

// "x=FACTOR" or "x=FACTOR,OFFSET"; a factor may be written as 1/255.
std::pair<std::string, Scale> scale_from(const std::string& text) {
  const auto [name, value] = split("--scale", text);
  const std::size_t comma = std::min(value.find(','), value.size());
  const auto number = [&text](const std::string& part) {
    double result = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), result);
    if (error != std::errc() || end != part.data() + part.size() || !std::isfinite(result))
      throw UsageError{"--scale: wanted NAME=FACTOR[,OFFSET], found '" + text + "'"};
    return result;
  };
  Scale scale;
  const std::string factor = value.substr(0, comma);
  const std::size_t slash = factor.find('/');
  scale.factor = slash == factor.npos ? number(factor) : number(factor.substr(0, slash)) / number(factor.substr(slash + 1));
  if (comma < value.size()) scale.offset = number(value.substr(comma + 1));
  if (!std::isfinite(scale.factor)) throw UsageError{"--scale: wanted NAME=FACTOR[,OFFSET], found '" + text + "'"};
  return {name, scale};
}

// Which options go with --steps and which do not.
void check_training(const Options& o) {
  const bool ends_in_table = o.log.ends_with(".csv") || o.log.ends_with(".json");
  if (!o.log.empty() && !ends_in_table) throw UsageError{"--log: wanted a file ending in .csv or .json, found '" + o.log + "'"};
  if (!o.state_to_onnx.empty() && o.model.empty())
    throw UsageError{"--state-to-onnx: wanted --model FILE.onnx with it, the model that the plan was compiled from"};
  const char* of_evaluation = o.eval_every > 0       ? "--eval-every"
                              : !o.save_best.empty() ? "--save-best"
                              : o.patience > 0       ? "--patience"
                                                     : nullptr;
  if (of_evaluation && o.eval_data.empty())
    throw UsageError{std::string(of_evaluation) + ": wanted --eval-data NAME=FILE with it, the data to look at"};
  for (const auto& [name, scale] : o.scales) {
    const auto is_for = [&, &n = name](const auto& data) { return data.first == n; };
    if (std::none_of(o.data.begin(), o.data.end(), is_for) && std::none_of(o.eval_data.begin(), o.eval_data.end(), is_for))
      throw UsageError{"--scale: wanted --data " + name + "=FILE with it, the values to scale"};
  }
  if (o.save_every > 0 && o.save_state.empty()) throw UsageError{"--save-every: wanted --save-state FILE with it"};
  const auto both = [](bool given, const char* option, const char* other) {
    if (given) throw UsageError{std::string(option) + " does not go with " + other};
  };
  if (o.steps < 0) {
    const char* wanted = !o.eval_data.empty() ? "--eval-data"
                         : !o.data.empty()    ? "--data"
                         : o.batch > 0        ? "--batch"
                         : o.save_every > 0   ? "--save-every"
                                              : nullptr;
    if (!wanted && !o.log.empty()) wanted = "--log";
    if (wanted) throw UsageError{std::string(wanted) + ": wanted --steps N with it"};
    return;
  }
  both(!o.verify_dir.empty(), "--steps", "--verify");
  both(o.runs >= 0 || o.warmup >= 0 || o.seconds > 0, "--steps", "--runs, --warmup or --time");
  both(!o.profile.empty() || !o.trace.empty(), "--steps", "--profile or --trace");
}

// "N=1,2,4".
void read_sweep(const std::string& text, Options& o) {
  const auto [name, list] = split("--batch-sweep", text);
  o.sweep_dim = name;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(list.data() + at, list.data() + comma, value);
    if (error != std::errc() || end != list.data() + comma || value < 1)
      throw UsageError{"--batch-sweep: wanted NAME=SIZE,SIZE,.. with sizes above 0, found '" + text + "'"};
    o.sweep.push_back(value);
    at = comma + 1;
  }
}

// Which options go with --streams and --batch-sweep.
void check_streams(const Options& o) {
  if (!measures_streams(o)) return;
  const char* option = o.sweep.empty() ? "--streams" : "--batch-sweep";
  const char* other = o.steps > 0                                      ? "--steps"
                      : !o.verify_dir.empty()                          ? "--verify"
                      : !o.profile.empty() || !o.trace.empty()         ? "--profile or --trace"
                      : !o.outputs.empty() || o.print                  ? "--output or --print"
                      : o.warm || !o.write_binaries.empty()            ? "--warm or --write-binaries"
                      : !o.load_state.empty() || !o.save_state.empty() ? "--load-state or --save-state"
                      : o.check_nan                                    ? "--check-nan"
                      : o.explain_start                                ? "--explain-start"
                                                                       : nullptr;
  if (other) throw UsageError{std::string(option) + " does not go with " + other};
  for (const auto& [name, value] : o.dims)
    if (name == o.sweep_dim)
      throw UsageError{"--batch-sweep gives dimension '" + name + "' its sizes: leave --dim " + name + " out"};
}

// Options whose texts are read when all have been seen.
struct Given {
  std::vector<std::string> dims, inputs, outputs, data, eval_data, settings, scales;
  std::string random, print, percentiles, sweep, color = "auto", progress = "auto", shell;
  double atol = 0, rtol = 0;
};

void add_training_options(CLI::App& app, Options& o, Given& given) {
  app.add_option("--load-state", o.load_state);
  app.add_option("--save-state", o.save_state);
  app.add_option("--steps", o.steps)->check(command_line::above_zero());
  app.add_option("--data", given.data)->allow_extra_args(false);
  app.add_option("--batch", o.batch)->check(command_line::above_zero());
  app.add_option("--seed", o.seed);
  app.add_flag("!--no-shuffle", o.shuffle);
  app.add_option("--set", given.settings)->allow_extra_args(false);
  app.add_option("--save-every", o.save_every)->check(command_line::above_zero());
  app.add_option("--scale", given.scales)->allow_extra_args(false);
  app.add_option("--eval-data", given.eval_data)->allow_extra_args(false);
  app.add_option("--eval-every", o.eval_every)->check(command_line::above_zero());
  app.add_option("--save-best", o.save_best);
  app.add_option("--patience", o.patience)->check(command_line::above_zero());
  app.add_option("--log", o.log);
  app.add_option("--state-to-onnx", o.state_to_onnx);
  app.add_option("--model", o.model);
}

void add_options(CLI::App& app, Options& o, Given& given) {
  app.set_version_flag("--version", std::string("oclrun ") + oclc_version());
  app.add_option("plan", o.plan);
  app.add_option("--entry", o.entry);
  app.add_option("-d,--device", o.device);
  app.add_option("--dim", given.dims)->allow_extra_args(false);
  app.add_option("--input", given.inputs)->allow_extra_args(false);
  app.add_option("--inputs", o.inputs_dir);
  app.add_flag("--random{0}", given.random);
  app.add_option("--output", given.outputs)->allow_extra_args(false);
  app.add_flag("--print{0}", given.print);
  add_training_options(app, o, given);
  app.add_flag("--check-nan", o.check_nan);
  app.add_option("--verify", o.verify_dir);
  app.add_option("--case", o.verify_case)->check(command_line::not_negative());
  app.add_option("--atol", given.atol)->check(command_line::not_negative());
  app.add_option("--rtol", given.rtol)->check(command_line::not_negative());
  app.add_option("--warmup", o.warmup)->check(command_line::not_negative());
  app.add_option("--runs", o.runs)->check(command_line::above_zero());
  app.add_option("--time", o.seconds)->check(command_line::above_zero());
  app.add_option("--percentiles", given.percentiles);
  app.add_option("--streams", o.streams)->check(command_line::in_range(1, 64));
  app.add_option("--batch-sweep", given.sweep);
  app.add_flag("--profile{table}", o.profile);
  app.add_option("--trace", o.trace);
  app.add_option("--memory-limit", o.memory_limit)->check(command_line::above_zero());
  app.add_option("--max-host-steps", o.max_host_steps)->check(command_line::above_zero());
  app.add_flag("--explain-start", o.explain_start);
  app.add_flag("--wait-for-optimized", o.wait_for_optimized);
  app.add_flag("--warm", o.warm);
  app.add_flag("--use-binaries", o.use_binaries);
  app.add_flag("--any-device", o.any_device);
  app.add_option("--write-binaries", o.write_binaries);
  app.add_flag("--json", o.json);
  app.add_flag("-q,--quiet", o.quiet);
  app.add_flag("-v,--verbose", o.verbose);
  app.add_option("--color", given.color)->check(command_line::one_of({"auto", "always", "never"}));
  app.add_option("--progress", given.progress)->check(command_line::one_of({"auto", "none", "json"}));
  app.add_flag("--man");
  app.add_option("--completion", given.shell)->check(command_line::one_of({"bash", "zsh", "fish"}));
}

void read_pairs(const Given& given, Options& o) {
  for (const std::string& text : given.dims) {
    const auto [name, value] = split("--dim", text);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      throw UsageError{"--dim: wanted NAME=NUMBER, found '" + text + "'"};
    o.dims.emplace_back(name, number);
  }
  for (const std::string& text : given.inputs) o.inputs.push_back(split("--input", text));
  for (const std::string& text : given.outputs) o.outputs.push_back(split("--output", text));
  for (const std::string& text : given.data) o.data.push_back(split("--data", text));
  for (const std::string& text : given.eval_data) o.eval_data.push_back(split("--eval-data", text));
  for (const std::string& text : given.scales) o.scales.push_back(scale_from(text));
  for (const std::string& text : given.settings) o.settings.push_back(split("--set", text));
}

void read_numbers(const CLI::App& app, const Given& given, Options& o) {
  if (app.count("--random") > 0) {
    if (!all_digits(given.random) || given.random.size() > 19)
      throw UsageError{"--random: wanted a seed, found '" + given.random + "'"};
    o.random = std::stoull(given.random);
  }
  if (app.count("--print") > 0) {
    if (!all_digits(given.print) || given.print.size() > 6)
      throw UsageError{"--print: wanted a number, found '" + given.print + "'"};
    o.print = std::stoi(given.print);
  }
  if (app.count("--atol") > 0) o.atol = given.atol;
  if (app.count("--rtol") > 0) o.rtol = given.rtol;
  const std::string& list = given.percentiles;
  for (std::size_t at = 0; !list.empty() && at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    double value = -1;
    const auto [end, error] = std::from_chars(list.data() + at, list.data() + comma, value);
    if (error != std::errc() || end != list.data() + comma || value < 0 || value > 100)
      throw UsageError{"--percentiles: wanted numbers from 0 to 100 separated by commas, found '" + list + "'"};
    o.percentiles.push_back(value);
    at = comma + 1;
  }
}

}  // namespace

std::optional<Scale> scale_of(const Options& options, const std::string& input) {
  for (const auto& [name, scale] : options.scales)
    if (name == input) return scale;
  return std::nullopt;
}

bool measures_streams(const Options& o) { return o.streams > 0; }

bool waits_for_optimized(const Options& o) {
  return o.wait_for_optimized || o.runs >= 0 || o.warmup >= 0 || o.seconds > 0 || !o.percentiles.empty() ||
         !o.profile.empty() || !o.trace.empty() || o.steps > 0 || !o.verify_dir.empty() || o.warm || measures_streams(o);
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  Given given;
  CLI::App app;
  add_options(app, o, given);
  try {
    app.parse(joined_arguments(argc, argv));
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", std::string(kHelp).c_str());
    return std::nullopt;
  } catch (const CLI::CallForVersion&) {
    std::printf("oclrun %s\n", oclc_version());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError{command_line::explained(app, error)};
  }
  if (app.count("--man") || !given.shell.empty()) {
    const command_line::Manual manual[] = {{"", kHelp}};
    const std::string text =
        given.shell.empty() ? command_line::man_page("oclrun", oclc_version(), "executes a plan that oclc compiled", manual)
                            : command_line::completion(given.shell, "oclrun", manual);
    std::printf("%s", text.c_str());
    return std::nullopt;
  }
  if (o.plan.empty()) throw UsageError{"wanted a plan, found none"};
  console().color = given.color == "always" ? Color::always : given.color == "never" ? Color::never : Color::automatic;
  console().progress = given.progress == "json"              ? ProgressForm::json
                       : given.progress == "none" || o.quiet ? ProgressForm::none
                                                             : ProgressForm::automatic;
  read_pairs(given, o);
  read_numbers(app, given, o);
  if (app.count("--profile") > 0 && o.profile != "table" && o.profile != "json" && o.profile != "csv")
    throw UsageError{"--profile: wanted table, json or csv, found '" + o.profile + "'"};
  if (!given.sweep.empty()) read_sweep(given.sweep, o);
  if (!o.sweep.empty()) o.streams = std::max(o.streams, 1);
  check_streams(o);
  check_training(o);
  if (o.verify_case >= 0 && o.verify_dir.empty()) throw UsageError{"--case: wanted --verify with it"};
  return o;
}

}  // namespace oclc::oclrun

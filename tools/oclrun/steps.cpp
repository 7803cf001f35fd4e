#include "tools/oclrun/steps.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tools/io/npy.h"
#include "tools/oclrun/inputs.h"
#include "tools/oclrun/training/batches.h"

namespace oclc::oclrun {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

std::string type_text(const io::Tensor& t) {
  std::string text = std::string(oclc_dtype_name(t.dtype)) + " [";
  for (std::size_t i = 0; i < t.shape.size(); ++i) text += (i ? ", " : "") + std::to_string(t.shape[i]);
  return text + "]";
}

io::Tensor carried_value(Runner& runner, std::uint32_t index) {
  const oclc_binding_info info = runner.plan().variables()[index];
  io::Tensor value;
  value.name = info.name;
  value.dtype = info.dtype;
  value.shape = runner.plan().variable_shape(index);
  value.data.resize(io::tensor_bytes("state '" + value.name + "'", value.dtype, value.shape));
  runner.session().read_variable(value.name, value.data.data(), value.data.size());
  return value;
}

// What goes through the steps: a tensor with the step as its first dimension.
oclc_series series_of(oclc_direction direction, const io::Tensor& tensor, std::uint64_t first, std::uint64_t steps) {
  oclc_series series = OCLC_INIT(oclc_series);
  const std::uint64_t all = tensor.shape.empty() ? 0 : static_cast<std::uint64_t>(tensor.shape[0]);
  const std::uint64_t of_step = all ? tensor.data.size() / all : 0;
  series.direction = direction;
  series.name = tensor.name.c_str();
  series.dtype = tensor.dtype;
  series.rank = static_cast<std::uint32_t>(tensor.shape.size());
  series.shape = tensor.shape.data();
  series.host = const_cast<std::byte*>(tensor.data.data()) + first * of_step;
  series.bytes = std::min(steps, all - std::min(first, all)) * of_step;
  return series;
}

void refuse_options_of_training(const Options& o) {
  const char* option = !o.data.empty()            ? "--data"
                       : o.batch > 0              ? "--batch"
                       : !o.settings.empty()      ? "--set"
                       : !o.eval_data.empty()     ? "--eval-data"
                       : !o.log.empty()           ? "--log"
                       : o.save_every > 0         ? "--save-every"
                       : !o.state_to_onnx.empty() ? "--state-to-onnx"
                       : !o.inputs_dir.empty()    ? "--inputs"
                                                  : nullptr;
  if (option)
    throw UsageError{std::string(option) +
                     " does not go with --steps of a plan whose outputs feed its inputs; give --input NAME=FILE"};
}

// Inputs of the steps, in the plan's order; those that are the same in all of them are bound.
std::vector<io::Tensor> read_inputs(Runner& runner, const Options& o) {
  std::vector<io::Tensor> series;
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < runner.inputs().size(); ++i) {
    const oclc_binding_info& input = runner.inputs()[i];
    const auto at = std::find_if(o.inputs.begin(), o.inputs.end(), [&](const auto& item) { return item.first == input.name; });
    if (at == o.inputs.end()) {
      open.push_back(i);
      continue;
    }
    io::Tensor tensor = read_tensor(at->second);
    tensor.name = input.name;
    if (tensor.dtype == input.dtype) check_limit(input, at->second, tensor);
    if (tensor.shape.size() != input.rank + 1)
      runner.bind_input(i, std::move(tensor));
    else if (tensor.shape[0] < o.steps)
      throw io::FileError(io::FileProblem::contents, at->second + ": input '" + tensor.name + "' has values for " +
                                                         std::to_string(tensor.shape[0]) + " steps, wanted " +
                                                         std::to_string(o.steps));
    else
      series.push_back(std::move(tensor));
  }
  for (const std::uint32_t i : open) {
    const oclc_binding_info& input = runner.inputs()[i];
    if (!o.random)
      throw UsageError{"input '" + std::string(input.name) + "' " + input.shape_text + " has no value: give --input " +
                       input.name + "=FILE, with the step as its first dimension or the same in all, or --random"};
    std::vector<std::int64_t> shape = runner.input_shape(i);
    shape.insert(shape.begin(), o.steps);
    series.push_back(random_tensor(input.dtype, shape, *o.random + i));
    series.back().name = input.name;
  }
  return series;
}

bool is_asked_for(const Options& o, const char* name) {
  return o.print || std::any_of(o.outputs.begin(), o.outputs.end(), [&](const auto& item) { return item.first == name; });
}

// Room for the outputs asked for. The inputs of a step are bound first, since they give the dimensions.
std::vector<io::Tensor> make_outputs(Runner& runner, const std::vector<io::Tensor>& inputs, const Options& o) {
  std::vector<io::Tensor> outputs;
  for (const io::Tensor& t : inputs) {
    oclc_tensor one = OCLC_INIT(oclc_tensor);
    static constexpr std::int64_t kScalar = 0;
    one.dtype = t.dtype;
    one.rank = static_cast<std::uint32_t>(t.shape.size()) - 1;
    one.shape = one.rank > 0 ? t.shape.data() + 1 : &kScalar;
    one.host = const_cast<std::byte*>(t.data.data());
    one.bytes = t.data.size();
    runner.session().set_input(runner.entry(), t.name, one);
  }
  for (const oclc_binding_info& info : runner.outputs()) {
    if (!is_asked_for(o, info.name)) continue;
    io::Tensor output;
    output.name = info.name;
    output.dtype = info.dtype;
    try {
      output.shape = runner.session().shape(runner.entry(), OCLC_OUTPUT, output.name);
    } catch (const rt::Error& error) {
      runner.explain(error);
    }
    output.shape.insert(output.shape.begin(), o.steps);
    output.data.resize(io::tensor_bytes("output '" + output.name + "'", output.dtype, output.shape));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

std::string input_names(const Runner& runner) {
  std::vector<std::string> names;
  for (const oclc_binding_info& input : runner.inputs()) names.emplace_back(input.name);
  const std::vector<std::string> states = carried_names(runner.plan());
  return joined(names) + (states.empty() ? "" : ", and state " + joined(states));
}

bool set_first_value(Runner& runner, const std::string& name, const std::string& file) {
  const std::vector<oclc_binding_info> variables = runner.plan().variables();
  for (std::uint32_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].carried_from || name != variables[i].name) continue;
    const io::Tensor value = read_tensor(file);
    if (value.dtype != variables[i].dtype || value.shape != runner.plan().variable_shape(i))
      throw io::FileError(io::FileProblem::contents, file + ": input '" + name + "' wanted " +
                                                         oclc_dtype_name(variables[i].dtype) + " " + variables[i].shape_text +
                                                         ", found " + type_text(value));
    runner.session().write_variable(name, value.data.data(), value.data.size());
    return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> carried_names(const rt::Plan& plan) {
  std::vector<std::string> names;
  for (const oclc_binding_info& variable : plan.variables())
    if (variable.carried_from) names.emplace_back(variable.name);
  return names;
}

void set_first_values(Runner& runner, const Options& o) {
  for (const auto& [name, file] : o.inputs) {
    const bool is_input = std::any_of(runner.inputs().begin(), runner.inputs().end(),
                                      [&, &n = name](const auto& input) { return n == input.name; });
    if (!is_input && !set_first_value(runner, name, file))
      throw UsageError{"--input: entry point '" + runner.entry_name() + "' has no input '" + name +
                       "'; it has: " + input_names(runner)};
  }
}

void check_output_names(const Runner& runner, const Options& o) {
  std::vector<std::string> known;
  for (const oclc_binding_info& output : runner.outputs()) known.emplace_back(output.name);
  for (const std::string& name : carried_names(runner.plan())) known.push_back(name);
  for (const auto& [name, path] : o.outputs)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError{"--output: entry point '" + runner.entry_name() + "' has no output '" + name +
                       "'; it has: " + joined(known)};
}

void write_outputs(Runner& runner, const std::vector<io::Tensor>& results, const Options& o) {
  const std::vector<oclc_binding_info> variables = runner.plan().variables();
  for (const auto& [name, path] : o.outputs) {
    const auto at = std::find_if(results.begin(), results.end(), [&, &n = name](const io::Tensor& y) { return y.name == n; });
    if (at != results.end()) {
      io::write_npy(path, *at);
      continue;
    }
    for (std::uint32_t i = 0; i < variables.size(); ++i)
      if (name == variables[i].name) io::write_npy(path, carried_value(runner, i));
  }
}

Steps run_steps(Runner& runner, const Options& o) {
  refuse_options_of_training(o);
  runner.bind_dims(o.dims);
  set_first_values(runner, o);
  const std::vector<io::Tensor> inputs = read_inputs(runner, o);
  Steps result;
  result.steps = static_cast<std::uint64_t>(o.steps);
  result.outputs = make_outputs(runner, inputs, o);
  const auto run = [&](std::uint64_t first, std::uint64_t steps) {
    std::vector<oclc_series> series;
    for (const io::Tensor& t : inputs) series.push_back(series_of(OCLC_INPUT, t, first, steps));
    for (const io::Tensor& t : result.outputs) series.push_back(series_of(OCLC_OUTPUT, t, first, steps));
    const auto begin = std::chrono::steady_clock::now();
    try {
      runner.session().run_steps(runner.entry(), steps, series);
    } catch (const rt::Error& error) {
      runner.explain(error);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  result.seconds = run(0, 1);
  if (result.steps > 1) {
    const double rest = run(1, result.steps - 1);
    result.seconds += rest;
    result.us_per_step = rest * 1e6 / static_cast<double>(result.steps - 1);
  }
  return result;
}

std::string summary(const Steps& s) {
  char text[160];
  std::snprintf(text, sizeof text, "steps: steps=%llu us_per_step=%.4g seconds=%.3f", static_cast<unsigned long long>(s.steps),
                s.us_per_step, s.seconds);
  return text;
}

}  // namespace oclc::oclrun

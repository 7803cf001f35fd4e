#include "compiler/ir/carry.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/support/error.h"
#include "compiler/support/nearest.h"

namespace oclc {
namespace {

[[noreturn]] void refuse_carry(const Carry& carry, const std::string& wanted, const std::string& found,
                               std::string advice = {}) {
  throw CompileError({.stage = "carry",
                      .wanted = fmt::format("{} for --carry {}={}", wanted, carry.output, carry.input),
                      .found = found,
                      .advice = std::move(advice),
                      .exit_code = ExitCode::usage});
}

std::string listed(const std::vector<std::string>& names, const std::string& wanted) {
  const std::string meant = did_you_mean(wanted, names);
  return fmt::format("none of that name; it has: {}{}", names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                     meant.empty() ? "" : "; " + meant);
}

std::size_t output_index(const Graph& graph, const Carry& carry) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i].first == carry.output) return i;
    names.push_back(graph.outputs()[i].first);
  }
  refuse_carry(carry, fmt::format("an output '{}' of the model", carry.output), listed(names, carry.output));
}

const Value& input_value(const Graph& graph, const Carry& carry) {
  std::vector<std::string> names;
  for (const auto& input : graph.inputs()) {
    if (input->name == carry.input) return *input;
    names.push_back(input->name);
  }
  refuse_carry(carry, fmt::format("an input '{}' of the model", carry.input), listed(names, carry.input));
}

std::optional<Expr> open_dimension(const TensorType& type) {
  for (const Expr& d : type.shape)
    if (!d.is_constant()) return d;
  return std::nullopt;
}

void check_types(const Carry& carry, const TensorType& output, const TensorType& input) {
  if (output.dtype != input.dtype || output.shape != input.shape)
    refuse_carry(
        carry, "an output and an input of one type and shape", fmt::format("output {}, input {}", output.text(), input.text()),
        open_dimension(output) || open_dimension(input) ? "--dim gives both the same sizes, if they are meant to be" : "");
  if (input.dtype == DType::string) refuse_carry(carry, "numbers, which a device can keep", "strings");
  if (const auto open = open_dimension(input))
    refuse_carry(carry, "sizes that are known when compiling, as state is laid out once", input.text(),
                 fmt::format("--dim {}=SIZE", open->text()));
}

void carry_output(Module& module, Graph& graph, const Carry& carry) {
  const std::size_t index = output_index(graph, carry);
  const Value& input = input_value(graph, carry);
  check_types(carry, graph.outputs()[index].second->type, input.type);
  for (const auto& [name, value] : graph.outputs())
    if (name == carry.input)
      refuse_carry(carry, "an input whose name no output has", fmt::format("output '{}'", name),
                   name == carry.output ? "add `,state`: it is no output of the plan then" : "rename that output");
  module.states.push_back({input.name, input.type, {}, {}, carry.output});
  if (carry.keeps_output)
    graph.add_output(carry.input, graph.outputs()[index].second);
  else
    graph.rename_output(index, carry.input);
}

}  // namespace

void carry_outputs(Module& module, std::span<const Carry> carries) {
  if (carries.empty()) return;
  if (module.entries.size() != 1 || trains(module))
    refuse_carry(carries.front(), "a model with one entry point and no training",
                 fmt::format("{} entry points and {} states", module.entries.size(), module.states.size()),
                 "a step of training carries its parameters by itself");
  for (std::size_t i = 0; i < carries.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (carries[i].output == carries[j].output)
        refuse_carry(carries[i], "each output once",
                     fmt::format("'{}' before as '{}={}'", carries[j].output, carries[j].output, carries[j].input),
                     "carry an Identity of it for the second input");
      if (carries[i].input == carries[j].input)
        refuse_carry(carries[i], "each input once",
                     fmt::format("'{}' before as '{}={}'", carries[j].input, carries[j].output, carries[j].input));
    }
  for (const Carry& carry : carries) carry_output(module, *module.entries.front(), carry);
}

bool holds_weights(const Module& module) {
  return std::any_of(module.states.begin(), module.states.end(),
                     [](const StateVariable& state) { return state.carried_from.empty(); });
}

bool trains(const Module& module) {
  return std::any_of(module.states.begin(), module.states.end(), [&](const StateVariable& state) {
    return state.carried_from.empty() && std::any_of(module.entries.begin(), module.entries.end(), [&](const auto& entry) {
             const auto& outputs = entry->outputs();
             return std::any_of(outputs.begin(), outputs.end(), [&](const auto& output) { return output.first == state.name; });
           });
  });
}

bool is_refittable(const Module& module) { return holds_weights(module) && !trains(module); }

}  // namespace oclc

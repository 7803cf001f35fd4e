#include "compiler/ops/reference/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/ops/reference/host_index.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

void bind_input(const Value& input, const HostTensor& tensor, SymbolValues& symbols) {
  const TensorType& type = input.type;
  const auto wrong = [&](const std::string& wanted) {
    throw CompileError(
        {.stage = "evaluate", .node = input.name, .op = "input", .wanted = wanted, .found = tensor.type().text()});
  };
  if (tensor.dtype() != type.dtype || tensor.shape().size() != type.rank()) wrong(type.text());
  for (std::size_t i = 0; i < type.rank(); ++i) {
    if (const auto symbol = type.shape[i].symbol_name()) {
      const auto at = symbols.emplace(*symbol, tensor.shape()[i]).first;
      if (at->second != tensor.shape()[i]) wrong(fmt::format("{} with {} = {}", type.text(), *symbol, at->second));
    }
  }
}

// Sets the symbols that the node reads from its first operand.
void read_dims(const Node& node, const HostTensor& read, SymbolValues& symbols) {
  const auto &dims = node.get<std::vector<Expr>>("dims"), &upper = node.get<std::vector<Expr>>("upper");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t value = read.int_at(static_cast<std::int64_t>(i));
    const auto most = upper[i].evaluate(symbols);
    if (value < 0 || !most || value > *most)
      throw CompileError({.stage = "evaluate",
                          .node = node.source,
                          .op = "bind_dims",
                          .wanted = fmt::format("0 <= {} <= {}", dims[i].text(), upper[i].text()),
                          .found = std::to_string(value)});
    symbols[*dims[i].symbol_name()] = value;
  }
}

HostTensor absent() { return HostTensor(DType::f32, {0}); }

}  // namespace

std::vector<std::int64_t> bind_shape(const Shape& shape, const SymbolValues& symbols) {
  std::vector<std::int64_t> sizes;
  for (const Expr& dim : shape) {
    const auto size = dim.evaluate(symbols);
    if (!size || *size < 0) {
      throw CompileError({.stage = "evaluate",
                          .wanted = "sizes for the dimensions " + text_of(shape),
                          .found = size ? fmt::format("{} = {}", dim.text(), *size) : "no value of " + dim.text()});
    }
    sizes.push_back(*size);
  }
  return sizes;
}

HostTensor eval_node(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  return node.op->eval(node, inputs, symbols).at(0);
}

std::int64_t most_text_bytes(const Node& node, std::span<const HostTensor> inputs) {
  constexpr std::int64_t kLongestNumber = 32;
  double elements = 0, longest = kLongestNumber;
  for (const auto& output : node.outputs) {
    const auto count = output->type.dtype == DType::string ? output->type.elements().constant() : 0;
    elements += static_cast<double>(count.value_or(INT64_MAX));
  }
  if (elements == 0) return 0;
  for (const HostTensor& input : inputs) {
    if (input.dtype() != DType::string) continue;
    std::size_t most = 0;
    for (std::int64_t i = 0; i < input.elements(); ++i) most = std::max(most, input.text_at(i).size());
    longest += static_cast<double>(most);
  }
  return static_cast<std::int64_t>(std::min(elements * longest, 9e18));
}

namespace {

// Adds the symbols that it binds to `symbols`.
std::vector<HostTensor> evaluate_with(const Graph& graph, std::span<const HostTensor> inputs, SymbolValues& symbols) {
  if (inputs.size() != graph.inputs().size()) {
    throw CompileError({.stage = "evaluate",
                        .wanted = fmt::format("{} inputs", graph.inputs().size()),
                        .found = std::to_string(inputs.size())});
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) bind_input(*graph.inputs()[i], inputs[i], symbols);
  std::unordered_map<const Value*, HostTensor> live;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value* input = graph.inputs()[i].get();
    const Sizes wanted = bind_shape(input->type.shape, symbols);
    if (inputs[i].shape() != wanted) {
      throw CompileError({.stage = "evaluate",
                          .node = input->name,
                          .op = "input",
                          .wanted = fmt::format("shape [{}]", fmt::join(wanted, ", ")),
                          .found = inputs[i].type().text()});
    }
    live.emplace(input, inputs[i]);
  }
  const std::vector<Node*> nodes = graph.nodes();
  std::unordered_map<const Value*, std::size_t> last_use;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& output : nodes[i]->outputs) last_use[output.get()] = i;
    for (const Value* input : nodes[i]->inputs) last_use[input] = i;
  }
  for (const auto& [name, value] : graph.outputs()) last_use[value] = nodes.size();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    std::vector<HostTensor> operands;
    for (const Value* input : node.inputs) operands.push_back(input ? live.at(input) : absent());
    std::vector<HostTensor> results;
    try {
      if (node.op->name == "bind_dims") {
        read_dims(node, operands[0], symbols);
        results = evaluate_with(*node.bodies[0], std::span(operands).subspan(1), symbols);
      } else {
        if (!node.op->eval)
          throw CompileError(
              {.wanted = fmt::format("an operator that the host computes, as '{}' with a key 'reference' in its head",
                                     node.op->formula),
               .found = "none",
               .exit_code = ExitCode::unsupported});
        results = node.op->eval(node, operands, symbols);
      }
    } catch (const CompileError& error) {
      auto parts = error.parts();
      if (parts.stage.empty()) parts.stage = "evaluate";
      if (parts.op.empty()) parts.op = std::string(node.op->name);
      if (parts.node.empty()) parts.node = node.source;
      throw CompileError(parts);
    }
    operands.clear();
    for (std::size_t k = 0; k < results.size(); ++k) {
      const TensorType& type = node.output(k)->type;
      OCLC_CHECK(results[k].dtype() == type.dtype && results[k].shape() == bind_shape(type.shape, symbols),
                 fmt::format("reference of {} gave {} for {}", node.op->name, results[k].type().text(), type.text()));
      live[node.output(k)] = std::move(results[k]);
    }
    const auto release = [&](const Value* value) {
      if (value && last_use.at(value) == i) live.erase(value);
    };
    for (const Value* input : node.inputs) release(input);
    for (const auto& output : node.outputs) release(output.get());
  }
  std::vector<HostTensor> outputs;
  for (const auto& [name, value] : graph.outputs()) outputs.push_back(live.at(value));
  return outputs;
}

}  // namespace

std::vector<HostTensor> evaluate(const Graph& graph, std::span<const HostTensor> inputs, const SymbolValues& given) {
  SymbolValues symbols = given;
  return evaluate_with(graph, inputs, symbols);
}

}  // namespace oclc

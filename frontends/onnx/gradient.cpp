#include "frontends/onnx/gradient.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/copy.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/gradients/autodiff.h"

namespace oclc::onnx {
namespace {

using ValueMap = std::unordered_map<const Value*, Value*>;

// Nodes that `y` needs, up to `variables`.
std::unordered_set<const Node*> nodes_between(const Value* y, std::span<Value* const> variables) {
  std::unordered_set<const Node*> found;
  std::vector<const Value*> open{y};
  while (!open.empty()) {
    const Value* value = open.back();
    open.pop_back();
    if (!value || !value->producer || std::find(variables.begin(), variables.end(), value) != variables.end()) continue;
    if (found.insert(value->producer).second)
      open.insert(open.end(), value->producer->inputs.begin(), value->producer->inputs.end());
  }
  return found;
}

void copy_node(const Node& node, Graph& to, ValueMap& values) {
  std::vector<Value*> inputs;
  for (const Value* input : node.inputs) inputs.push_back(input ? values.at(input) : nullptr);
  std::vector<std::unique_ptr<Graph>> bodies;
  for (const auto& body : node.bodies) bodies.push_back(copy_graph(*body));
  const Node* copied = to.add(*node.op, std::move(inputs), node.attributes, node.source, nullptr, std::move(bodies));
  // Variables among the outputs keep the value they have.
  for (std::size_t i = 0; i < node.outputs.size(); ++i) values.emplace(node.output(i), copied->output(i));
}

}  // namespace

std::vector<Value*> gradients_at(Builder& b, Value* y, std::span<Value* const> variables, std::span<Value* const> points,
                                 std::size_t count) {
  Graph part;
  ValueMap inner, outer;
  const auto add_input = [&](const Value* value, Value* point) {
    Value* input = part.add_input("v" + std::to_string(part.inputs().size()), value->type);
    inner.emplace(value, input);
    outer.emplace(input, point);
    return input;
  };
  std::vector<Value*> wrt;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    Value* input = add_input(variables[i], points[i]);
    if (i < count) wrt.push_back(input);
  }
  const auto needed = nodes_between(y, variables);
  for (const Node* node : b.graph().nodes()) {
    if (!needed.count(node)) continue;
    for (Value* input : node->inputs) {
      if (input && !inner.count(input)) add_input(input, input);
    }
    copy_node(*node, part, inner);
  }
  if (!inner.count(y)) add_input(y, y);

  Builder inside(part, b.source());
  Ints axes;
  for (std::size_t i = 0; i < y->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  Value* sum = axes.empty() ? inner.at(y) : inside.reduce("reduce_sum", inner.at(y), axes, false);
  const std::vector<Value*> found = add_gradients(part, sum, wrt);
  for (std::size_t i = 0; i < found.size(); ++i) part.add_output("g" + std::to_string(i), found[i]);
  part.erase_dead();
  for (const Node* node : part.nodes()) copy_node(*node, b.graph(), outer);
  std::vector<Value*> result;
  for (const Value* gradient : found) result.push_back(outer.at(gradient));
  return result;
}

}  // namespace oclc::onnx

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

std::string label(const Node& node) {
  return fmt::format("node {} ({}){}", node.id, node.op ? node.op->name : "no operator",
                     node.source.empty() ? "" : " of '" + node.source + "'");
}

bool is_permutation_of_rank(const Layout& layout, std::size_t rank) {
  std::vector<int> order = layout.order;
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int>(i)) return false;
  }
  return order.empty() || order.size() == rank;
}

std::string check_value(const Value& value, const Node* producer, std::size_t index, std::unordered_set<int>& ids) {
  if (!ids.insert(value.id).second) return fmt::format("two values have the number {}", value.id);
  if (value.producer != producer || value.index != static_cast<int>(index))
    return fmt::format("value {} does not know where it comes from", value.id);
  if (!is_permutation_of_rank(value.layout, value.type.rank()))
    return fmt::format("the layout of value {} is no order of its dimensions", value.id);
  if (value.content && value.type.is_static() &&
      value.type.elements() != Expr(static_cast<std::int64_t>(value.content->size()))) {
    return fmt::format("value {} has {} elements, but {} are known", value.id, value.type.elements().text(),
                       value.content->size());
  }
  return {};
}

std::string check_types(const Node& node) {
  const auto count = static_cast<int>(node.inputs.size());
  if (count < node.op->min_inputs || count > node.op->max_inputs) return fmt::format("{} has {} inputs", label(node), count);
  std::vector<TensorType> types;
  try {
    types = node.op->infer(node);
  } catch (const CompileError& error) {
    return fmt::format("{}: {}", label(node), error.what());
  }
  if (types.size() != node.outputs.size())
    return fmt::format("{} has {} outputs instead of {}", label(node), node.outputs.size(), types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!(types[i] == node.outputs[i]->type)) {
      return fmt::format("{}: output {} has type {} instead of {}", label(node), i, node.outputs[i]->type.text(),
                         types[i].text());
    }
  }
  return {};
}

}  // namespace

std::string verify(const Graph& graph) {
  std::unordered_set<const Value*> defined;
  std::unordered_set<int> ids, node_ids;
  std::unordered_set<std::string> names;
  std::unordered_map<const Value*, std::unordered_map<const Node*, int>> uses;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& input = *graph.inputs()[i];
    if (auto problem = check_value(input, nullptr, i, ids); !problem.empty()) return problem;
    if (!input.name.empty() && !names.insert(input.name).second) return fmt::format("two inputs are named '{}'", input.name);
    defined.insert(&input);
  }
  const std::vector<Node*> nodes = graph.nodes();
  for (const Node* node : nodes) {
    if (!node->op) return label(*node);
    if (!node_ids.insert(node->id).second) return fmt::format("two nodes have the number {}", node->id);
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const Value* input = node->inputs[i];
      if (!input) continue;
      if (!defined.count(input))
        return fmt::format("{} uses value {} before it is made, or from another graph", label(*node), input->id);
      ++uses[input][node];
    }
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      if (auto problem = check_value(*node->outputs[i], node, i, ids); !problem.empty()) return problem;
    }
    if (auto problem = check_types(*node); !problem.empty()) return problem;
    for (const auto& output : node->outputs) defined.insert(output.get());
    for (const auto& body : node->bodies) {
      if (auto problem = verify(*body); !problem.empty()) return fmt::format("body of {}: {}", label(*node), problem);
    }
  }
  for (const Value* value : defined) {
    std::unordered_map<const Node*, int> listed;
    for (const Node* user : value->users) ++listed[user];
    if (listed != uses[value]) return fmt::format("the use list of value {} is out of date", value->id);
  }
  names.clear();
  for (const auto& [name, value] : graph.outputs()) {
    if (!names.insert(name).second) return fmt::format("two outputs are named '{}'", name);
    if (!defined.count(value)) return fmt::format("output '{}' is no value of the graph", name);
  }
  return {};
}

}  // namespace oclc

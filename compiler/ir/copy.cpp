#include "compiler/ir/copy.h"

namespace oclc {
namespace {

std::unique_ptr<Value> copy_value(const Value& value, Node* producer) {
  auto copy = std::make_unique<Value>(value);
  copy->producer = producer;
  copy->users.clear();
  return copy;
}

}  // namespace

GraphCopy GraphCopy::of(const Graph& graph) {
  GraphCopy result{std::make_unique<Graph>(), {}};
  Graph& to = *result.graph;
  to.name = graph.name;
  to.next_value_ = graph.next_value_;
  to.next_node_ = graph.next_node_;
  for (const auto& input : graph.inputs_) {
    to.inputs_.push_back(copy_value(*input, nullptr));
    result.values[input.get()] = to.inputs_.back().get();
  }
  for (const auto& node : graph.nodes_) {
    auto copy = std::make_unique<Node>();
    copy->id = node->id;
    copy->op = node->op;
    copy->attributes = node->attributes;
    copy->source = node->source;
    for (const Value* input : node->inputs) {
      Value* value = input ? result.values.at(input) : nullptr;
      copy->inputs.push_back(value);
      if (value) value->users.push_back(copy.get());
    }
    for (const auto& output : node->outputs) {
      copy->outputs.push_back(copy_value(*output, copy.get()));
      result.values[output.get()] = copy->outputs.back().get();
    }
    for (const auto& body : node->bodies) copy->bodies.push_back(copy_graph(*body));
    to.insert(std::move(copy), nullptr);
  }
  for (const auto& [name, value] : graph.outputs_) to.outputs_.emplace_back(name, result.values.at(value));
  return result;
}

}  // namespace oclc

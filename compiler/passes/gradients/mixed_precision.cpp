// store_activations: see the header. Without it all that the forward pass keeps for the backward pass takes twice the memory.
#include "compiler/passes/gradients/mixed_precision.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/op_def.h"

namespace oclc {
namespace {

using Values = std::unordered_set<const Value*>;

// What results of an operator of this kind are, if the entry's inputs take part.
enum class Class {
  activation,  // 16 bits hold it
  follows,     // an activation if an operand is one
  wide         // sums, statistics, integers: never
};

struct KindRow {
  OpKind kind;
  Class result;
};

constexpr KindRow kKinds[] = {
    {OpKind::contraction, Class::activation}, {OpKind::window, Class::activation},   {OpKind::row, Class::activation},
    {OpKind::indexing, Class::activation},    {OpKind::elementwise, Class::follows}, {OpKind::movement, Class::follows},
    {OpKind::reduction, Class::wide},         {OpKind::scan, Class::wide},           {OpKind::generator, Class::wide},
    {OpKind::control, Class::wide},           {OpKind::opaque, Class::wide}};

// Stored in full nevertheless: a loss is computed from it, or a transform would enlarge its rounding.
constexpr std::string_view kKept[] = {"log_softmax", "winograd_input", "winograd_gradient", "winograd_filter_gradient"};

Class class_of(const Node& node) {
  const auto row =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindRow& r) { return r.kind == node.op->kind; });
  return row == std::end(kKinds) || node.outputs.size() != 1 ? Class::wide : row->result;
}

bool reads_activations(const Node& node) { return node.op->kind == OpKind::contraction || node.op->kind == OpKind::window; }

bool kept(const Node& node) {
  if (std::find(std::begin(kKept), std::end(kKept), node.op->name) != std::end(kKept)) return true;
  const auto& users = node.output()->users;
  return !users.empty() && std::all_of(users.begin(), users.end(), [](const Node* user) {
    return user->op->name == "winograd_output" || user->op->name == "winograd_filter_gradient";
  });
}

// What products of two values of the entry read, directly or moved.
Values operands_of_pairs(const std::vector<Node*>& nodes, const Values& of_inputs) {
  Values found;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Node& node = *nodes[i];
    const bool pair = node.op->kind == OpKind::contraction && node.inputs.size() > 1 && of_inputs.count(node.inputs[0]) != 0 &&
                      of_inputs.count(node.inputs[1]) != 0;
    if (pair || (node.op->kind == OpKind::movement && found.count(node.output())))
      found.insert(node.inputs.begin(), node.inputs.end());
  }
  return found;
}

bool is_state(const std::string& name, std::span<const StateVariable> states) {
  return std::any_of(states.begin(), states.end(), [&](const StateVariable& s) { return s.name == name; });
}

}  // namespace

bool updates_state(const Graph& graph, std::span<const StateVariable> states) {
  return std::any_of(graph.outputs().begin(), graph.outputs().end(),
                     [&](const auto& output) { return is_state(output.first, states); });
}

bool store_activations(Graph& graph, std::span<const StateVariable> states, DType storage, bool keep_pairs) {
  Values of_inputs, activations, read;
  for (const auto& input : graph.inputs()) {
    if (is_state(input->name, states)) continue;
    of_inputs.insert(input.get());
    activations.insert(input.get());
  }
  const std::vector<Node*> nodes = graph.nodes();
  for (const Node* node : nodes) {
    const auto among = [&](const Values& values) {
      return std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) { return values.count(v) != 0; });
    };
    if (!among(of_inputs)) continue;
    for (const auto& output : node->outputs) of_inputs.insert(output.get());
    const Class result = class_of(*node);
    if (result == Class::activation || (result == Class::follows && among(activations))) activations.insert(node->output());
  }
  // Values that a product or a window reads, itself or what is made of them.
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const bool reads =
        reads_activations(*nodes[i]) || std::any_of(nodes[i]->outputs.begin(), nodes[i]->outputs.end(),
                                                    [&](const auto& output) { return read.count(output.get()) != 0; });
    if (reads) read.insert(nodes[i]->inputs.begin(), nodes[i]->inputs.end());
  }
  const Values paired = keep_pairs ? operands_of_pairs(nodes, of_inputs) : Values();
  bool changed = false;
  for (Node* node : nodes) {
    if (node->outputs.size() != 1 || node->output()->type.dtype != DType::f32) continue;
    if (!activations.count(node->output()) || !read.count(node->output()) || paired.count(node->output()) || kept(*node))
      continue;
    node->attributes[std::string(kStoredAs)] = storage;
    changed = true;
  }
  return changed;
}

}  // namespace oclc

#include "compiler/ir/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/op_def.h"
#include "compiler/support/error.h"
#include "runtime/package/limits.h"

namespace oclc {
namespace {

void remove_use(Value* value, const Node* node) {
  if (!value) return;
  std::vector<Node*>& users = value->users;
  // Of many from the end: what was added last goes first.
  constexpr std::size_t kMany = 64;
  auto at = users.size() > kMany ? std::find(users.rbegin(), users.rend(), node).base() : users.end();
  at = users.size() > kMany && at != users.begin() ? at - 1 : std::find(users.begin(), users.end(), node);
  OCLC_CHECK(at != users.end(), "use list of value " + std::to_string(value->id));
  *at = users.back();
  users.pop_back();
}

// Texts may be moved, chosen, compared and given to the host, narrow numbers moved, chosen and converted; elementwise operators
// and indexing look themselves.
void refuse_texts_and_narrow(const Node& node) {
  switch (node.op->kind) {
    case OpKind::elementwise:
    case OpKind::movement:
    case OpKind::indexing:
    case OpKind::generator:
    case OpKind::control:
    case OpKind::host:
      return;
    default:
      break;
  }
  for (const Value* input : node.inputs) {
    if (!input) continue;
    if (input->type.dtype == DType::string) throw CompileError({.wanted = "numbers", .found = input->type.text()});
    if (is_narrow(input->type.dtype))
      throw CompileError(
          {.wanted = "numbers that are computed with", .found = input->type.text(), .advice = "cast them first"});
  }
}

// Plans have no more, and index maps take time and text in proportion.
void check_rank(const TensorType& type) {
  if (type.rank() > package::kMaxRank)
    throw CompileError({.wanted = fmt::format("tensors of at most {} dimensions", package::kMaxRank),
                        .found = std::to_string(type.rank()),
                        .exit_code = ExitCode::unsupported});
}

}  // namespace

Graph::~Graph() = default;

Value* Graph::add_input(std::string name, TensorType type) {
  try {
    check_rank(type);
  } catch (const CompileError& error) {
    auto parts = error.parts();
    parts.stage = "graph";
    parts.node = name;
    throw CompileError(parts);
  }
  auto value = std::make_unique<Value>();
  value->id = next_value_++;
  value->name = std::move(name);
  value->type = std::move(type);
  value->index = static_cast<int>(inputs_.size());
  inputs_.push_back(std::move(value));
  return inputs_.back().get();
}

Node* Graph::insert(std::unique_ptr<Node> node, Node* before) {
  OCLC_CHECK(!before || before->graph_ == this, "insertion before a node of another graph");
  Node* raw = node.get();
  raw->graph_ = this;
  raw->place_ = nodes_.insert(before ? before->place_ : nodes_.end(), std::move(node));
  return raw;
}

Node* Graph::add(const OpDef& op, std::vector<Value*> inputs, std::map<std::string, Attribute, std::less<>> attributes,
                 std::string source, Node* before, std::vector<std::unique_ptr<Graph>> bodies) {
  auto node = std::make_unique<Node>();
  node->op = &op;
  node->inputs = std::move(inputs);
  node->attributes = std::move(attributes);
  node->source = std::move(source);
  node->bodies = std::move(bodies);
  std::vector<TensorType> types;
  try {
    const auto count = static_cast<int>(node->inputs.size());
    if (count < op.min_inputs || count > op.max_inputs) {
      throw CompileError({.wanted = op.min_inputs == op.max_inputs
                                        ? fmt::format("{} inputs", op.min_inputs)
                                        : fmt::format("{} to {} inputs", op.min_inputs, op.max_inputs),
                          .found = std::to_string(count)});
    }
    refuse_texts_and_narrow(*node);
    types = op.infer(*node);
    for (const TensorType& type : types) check_rank(type);
  } catch (const CompileError& error) {
    auto parts = error.parts();
    if (parts.stage.empty()) parts.stage = "graph";
    if (parts.op.empty()) parts.op = std::string(op.name);
    if (parts.node.empty()) parts.node = node->source;
    throw CompileError(parts);
  }
  node->id = next_node_++;
  for (std::size_t i = 0; i < types.size(); ++i) {
    auto value = std::make_unique<Value>();
    value->id = next_value_++;
    value->type = std::move(types[i]);
    value->producer = node.get();
    value->index = static_cast<int>(i);
    node->outputs.push_back(std::move(value));
  }
  if (op.content) node->outputs[0]->content = op.content(*node);
  for (Value* input : node->inputs) {
    if (input) input->users.push_back(node.get());
  }
  return insert(std::move(node), before);
}

void Graph::add_output(std::string name, Value* value) { outputs_.emplace_back(std::move(name), value); }

void Graph::rename_output(std::size_t index, std::string name) { outputs_.at(index).first = std::move(name); }

void Graph::set_input(Node* node, std::size_t index, Value* value) {
  remove_use(node->inputs.at(index), node);
  node->inputs[index] = value;
  if (value) value->users.push_back(node);
}

void Graph::replace_all_uses(Value* from, Value* to) {
  OCLC_CHECK(from != to, "value replaced by itself");
  for (Node* user : from->users) {
    // One entry per use: each visit moves one of them.
    const auto at = std::find(user->inputs.begin(), user->inputs.end(), from);
    OCLC_CHECK(at != user->inputs.end(), "use list out of date");
    *at = to;
    to->users.push_back(user);
  }
  from->users.clear();
  for (auto& [name, value] : outputs_) {
    if (value == from) value = to;
  }
  if (to->name.empty()) to->name = from->name;
}

bool Graph::is_output(const Value* value) const {
  return std::any_of(outputs_.begin(), outputs_.end(), [&](const auto& o) { return o.second == value; });
}

void Graph::erase(Node* node) {
  for (const auto& output : node->outputs)
    OCLC_CHECK(output->users.empty() && !is_output(output.get()), "erase of a used node");
  for (Value* input : node->inputs) remove_use(input, node);
  OCLC_CHECK(node->graph_ == this, "erase of a node of another graph");
  nodes_.erase(node->place_);
}

bool Graph::erase_dead() {
  std::unordered_set<const Value*> kept;
  for (const auto& [name, value] : outputs_) kept.insert(value);
  bool changed = false;
  for (auto at = nodes_.end(); at != nodes_.begin();) {
    Node* node = (--at)->get();
    const bool used = std::any_of(node->outputs.begin(), node->outputs.end(),
                                  [&](const auto& o) { return !o->users.empty() || kept.count(o.get()); });
    if (used) continue;
    for (Value* input : node->inputs) remove_use(input, node);
    at = nodes_.erase(at);
    changed = true;
  }
  return changed;
}

void Graph::sort() {
  std::unordered_map<const Node*, std::size_t> position;
  const std::vector<Node*> all = nodes();
  for (std::size_t i = 0; i < all.size(); ++i) position[all[i]] = i;
  std::vector<int> state(all.size(), 0);
  std::vector<std::size_t> order;
  order.reserve(all.size());
  for (std::size_t root = 0; root < all.size(); ++root) {
    std::vector<std::pair<std::size_t, std::size_t>> stack;  // node, next input
    if (state[root] == 0) stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next == 0) state[at] = 1;
      const Node* node = all[at];
      if (next == node->inputs.size()) {
        state[at] = 2;
        order.push_back(at);
        stack.pop_back();
        continue;
      }
      const Value* input = node->inputs[next++];
      if (!input || !input->producer) continue;
      const auto found = position.find(input->producer);
      if (found == position.end()) continue;  // captured from an outer graph
      OCLC_CHECK(state[found->second] != 1, "cycle in the graph");
      if (state[found->second] == 0) stack.emplace_back(found->second, 0);
    }
  }
  for (const std::size_t i : order) nodes_.splice(nodes_.end(), nodes_, all[i]->place_);
}

std::vector<Node*> Graph::nodes() const {
  std::vector<Node*> all;
  all.reserve(nodes_.size());
  for (const auto& node : nodes_) all.push_back(node.get());
  return all;
}

const HostTensor* constant_of(const Value* value) {
  return value && value->producer && value->producer->op->name == "constant" ? &value->producer->get<HostTensor>("tensor")
                                                                             : nullptr;
}

void attribute_missing(const Node& node, std::string_view name) {
  check_failed("attribute", "graph.h", 0,
               fmt::format("node '{}' ({}) has no attribute '{}' of the type asked for", node.source, node.op->name, name));
}

Expr flops_of(const Graph& graph) {
  Expr flops = 0;
  for (const Node* node : graph.nodes()) {
    if (node->op->cost) flops += node->op->cost(*node).flops;
  }
  return flops;
}

}  // namespace oclc

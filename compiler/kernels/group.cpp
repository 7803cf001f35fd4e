#include "compiler/kernels/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/op_def.h"
#include "compiler/kernels/group_order.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// A launch costs as much as moving this many bytes (about 2.5 us at 30 GB/s).
constexpr double kLaunchBytes = 75e3;
// Assumed value of an unbound symbol in cost estimates.
constexpr std::int64_t kTypicalDim = 8;
// A flop costs as much as moving this many bytes on the machines we know (10 flops a byte).
constexpr double kBytesPerFlop = 0.1;
// A concatenation of more operands is stored: readers would select among all of them for every element.
constexpr std::size_t kLongestSelection = 8;
// Elementwise operators between the operands of reductions that become one kernel.
constexpr int kDeepestSibling = 4;
// Longest sum of which a tile of the left operand fits the cache.
constexpr std::int64_t kLongestPackedSum = 8192;
// Longest chain of inlined nodes: bounds the size of one kernel and the depth of its lowering.
constexpr int kLongestChain = 128;

bool is_anchor_kind(OpKind kind) {
  return kind == OpKind::contraction || kind == OpKind::window || kind == OpKind::reduction || kind == OpKind::row ||
         kind == OpKind::scan || kind == OpKind::control || kind == OpKind::opaque;
}

bool rereads_operands(const Node& node) {
  return node.op->kind == OpKind::contraction || node.op->kind == OpKind::window || node.op->kind == OpKind::opaque;
}

double typical(const Expr& e) {
  SymbolValues values;
  for (const std::string& s : e.symbols()) values[s] = kTypicalDim;
  return static_cast<double>(e.evaluate(values).value_or(kUnbounded));
}

double bytes_of(const Value& value) {
  return typical(value.type.elements()) * static_cast<double>(size_bytes(value.type.dtype));
}

// Broadcasting may put unit dimensions in front of the shape.
bool same_but_for_leading_units(const Shape& inner, const Shape& outer) {
  if (inner.size() > outer.size()) return false;
  const std::size_t extra = outer.size() - inner.size();
  return std::all_of(outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(extra),
                     [](const Expr& e) { return e == Expr(1); }) &&
         std::equal(inner.begin(), inner.end(), outer.begin() + static_cast<std::ptrdiff_t>(extra));
}

class Grouper {
 public:
  Grouper(const Graph& graph, const GroupOptions& options) : graph_(graph), options_(options), nodes_(graph.nodes()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) position_[nodes_[i]] = i;
  }

  Grouping run() {
    if (options_.fuse) {
      for (Node* node : nodes_) {
        if (is_anchor_kind(node->op->kind) && !join_sibling(node)) grow(start_group(node, true));
      }
      group_updates();
    } else {
      for (Node* node : nodes_) {
        if (node->op->name == "reshape" || node->op->kind == OpKind::generator) continue;
        start_group(node, is_anchor_kind(node->op->kind));
      }
    }
    materialise_rest();
    choose_outputs();
    return finish();
  }

 private:
  int start_group(Node* node, bool anchor) {
    const int id = static_cast<int>(groups_.size());
    groups_.push_back({anchor ? node : nullptr, {node}, {}});
    group_of_[node] = id;
    return id;
  }

  std::optional<int> group_of(const Node* node) const {
    const auto at = group_of_.find(node);
    return at == group_of_.end() ? std::nullopt : std::optional(at->second);
  }

  // True if computing `value` needs a result of group `id`. Groups count as a whole: what one member reads, all need.
  bool depends_on(const Value* value, int id) {
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> stack;
    const auto visit = [&](const Value* v) {
      if (v && v->producer && seen.insert(v->producer).second) stack.push_back(v->producer);
    };
    visit(value);
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      const auto group = group_of(node);
      if (group == id) return true;
      if (group) {
        for (const Node* member : groups_[static_cast<std::size_t>(*group)].nodes) {
          seen.insert(member);
          for (const Value* input : member->inputs) visit(input);
        }
      } else {
        for (const Value* input : node->inputs) visit(input);
      }
    }
    return false;
  }

  bool fits_epilogue(const Node& user, int id, const std::unordered_set<const Value*>& inside) {
    if (group_of(&user) || user.has("recompute")) return false;  // which comes later
    if (is_bijective_movement(user)) return true;
    if (user.op->kind != OpKind::elementwise) return false;
    const Shape& shape = user.output()->type.shape;
    bool same_shape = false;
    for (const Value* input : user.inputs) {
      if (inside.count(input)) {
        if (!same_but_for_leading_units(input->type.shape, shape)) return false;
        same_shape = true;
      } else if (depends_on(input, id)) {
        return false;
      }
    }
    return same_shape;
  }

  void grow(int id) {
    Node* anchor = groups_[static_cast<std::size_t>(id)].anchor;
    if (anchor && (anchor->op->kind == OpKind::control || anchor->op->kind == OpKind::scan)) return;
    std::unordered_set<const Value*> inside;
    for (const Node* node : groups_[static_cast<std::size_t>(id)].nodes) {
      for (const auto& output : node->outputs) inside.insert(output.get());
    }
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<Node*> candidates;
      for (const Value* value : inside) candidates.insert(candidates.end(), value->users.begin(), value->users.end());
      std::sort(candidates.begin(), candidates.end(),
                [&](const Node* a, const Node* b) { return position_.at(a) < position_.at(b); });
      candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
      for (Node* user : candidates) {
        if (!fits_epilogue(*user, id, inside)) continue;
        group_of_[user] = id;
        groups_[static_cast<std::size_t>(id)].nodes.push_back(user);
        inside.insert(user->output());
        changed = true;
      }
    }
    trim_movement(id);
  }

  // Reductions over the same axes of what is computed from the same values become one kernel: the sums of a batch norm's
  // gradient.
  bool join_sibling(Node* node) {
    if (node->op->kind != OpKind::reduction) return false;
    for (std::size_t id = 0; id < groups_.size(); ++id) {
      const Node* anchor = groups_[id].anchor;
      if (!anchor || anchor->op->kind != OpKind::reduction || !same_axes(*anchor, *node)) continue;
      const Value *a = anchor->inputs[0], *b = node->inputs[0];
      if (!(a->type.shape == b->type.shape) ||
          (!is_computed_from(a, b, 0) && !is_computed_from(b, a, 0) && !share_operand(a, b)))
        continue;
      const std::vector<Node*> before = groups_[id].nodes;
      add_to_group(node, static_cast<int>(id));
      if (is_cyclic(static_cast<int>(id))) {
        group_of_.erase(node);
        restore(static_cast<int>(id), before);
        continue;
      }
      grow(static_cast<int>(id));
      return true;
    }
    return false;
  }

  static bool same_axes(const Node& a, const Node& b) {
    using Ints = std::vector<std::int64_t>;
    return a.has("axes") && b.has("axes") && a.get<Ints>("axes") == b.get<Ints>("axes") &&
           a.get_or<std::int64_t>("keepdims", 1) == b.get_or<std::int64_t>("keepdims", 1);
  }

  // Both computed elementwise from one tensor of their size.
  bool share_operand(const Value* a, const Value* b) const {
    const auto elementwise = [&](const Value* v) {
      return v->producer && v->producer->op->kind == OpKind::elementwise && !group_of(v->producer);
    };
    if (!elementwise(a) || !elementwise(b)) return false;
    return std::any_of(a->producer->inputs.begin(), a->producer->inputs.end(), [&](const Value* input) {
      const auto& others = b->producer->inputs;
      return input->type.shape == a->type.shape && !constant_of(input) &&
             std::find(others.begin(), others.end(), input) != others.end();
    });
  }

  // True if elementwise operators lead from `source` to `value`.
  bool is_computed_from(const Value* value, const Value* source, int depth) const {
    if (value == source) return true;
    const Node* node = value->producer;
    if (!node || depth == kDeepestSibling || node->op->kind != OpKind::elementwise || group_of(node)) return false;
    return std::any_of(node->inputs.begin(), node->inputs.end(),
                       [&](const Value* input) { return is_computed_from(input, source, depth + 1); });
  }

  // Elementwise results of the graph over one iteration space become one kernel: an optimizer's new moments and parameters.
  void group_updates() {
    std::vector<int> made;
    for (Node* node : nodes_) {
      if (group_of(node) || node->op->kind != OpKind::elementwise || !graph_.is_output(node->output())) continue;
      const auto home = std::find_if(made.begin(), made.end(), [&](int id) { return joins(*node, id); });
      if (home == made.end()) {
        made.push_back(start_group(node, false));
        grow(made.back());
      } else {
        const std::vector<Node*> before = groups_[static_cast<std::size_t>(*home)].nodes;
        add_to_group(node, *home);
        grow(*home);
        if (is_cyclic(*home)) restore(*home, before);
      }
    }
  }

  bool joins(const Node& node, int id) {
    const Group& group = groups_[static_cast<std::size_t>(id)];
    return group.nodes.front()->output()->type.shape == node.output()->type.shape && !depends_on(node.output(), id);
  }

  void add_to_group(Node* node, int id) {
    group_of_[node] = id;
    auto& nodes = groups_[static_cast<std::size_t>(id)].nodes;
    nodes.push_back(node);
    std::sort(nodes.begin(), nodes.end(), [&](const Node* a, const Node* b) { return position_.at(a) < position_.at(b); });
  }

  void restore(int id, const std::vector<Node*>& nodes) {
    for (const Node* node : groups_[static_cast<std::size_t>(id)].nodes) group_of_.erase(node);
    groups_[static_cast<std::size_t>(id)].nodes = nodes;
    for (const Node* node : nodes) group_of_[node] = id;
  }

  bool is_cyclic(int id) {
    const auto& nodes = groups_[static_cast<std::size_t>(id)].nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
      return std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* input) {
        return input && input->producer && group_of(input->producer) != id && depends_on(input, id);
      });
    });
  }

  // Movement at the end of a group stays only where its result is what the outside reads; else the readers apply it themselves.
  void trim_movement(int id) {
    auto& nodes = groups_[static_cast<std::size_t>(id)].nodes;
    std::sort(nodes.begin(), nodes.end(), [&](const Node* a, const Node* b) { return position_.at(a) < position_.at(b); });
    for (std::size_t i = nodes.size(); i-- > 1;) {
      Node* node = nodes[i];
      if (!is_bijective_movement(*node)) continue;
      const bool feeds_inside = std::any_of(node->output()->users.begin(), node->output()->users.end(),
                                            [&](const Node* u) { return group_of(u) == id; });
      if (feeds_inside || graph_.is_output(node->output())) continue;
      const Value* source = node->inputs[0];
      const bool source_leaves =
          graph_.is_output(source) || std::any_of(source->users.begin(), source->users.end(),
                                                  [&](const Node* u) { return u != node && group_of(u) != id; });
      const bool siblings = std::count_if(source->users.begin(), source->users.end(),
                                          [&](const Node* u) { return group_of(u) == id && is_bijective_movement(*u); }) > 1;
      if (!source_leaves && !siblings) continue;
      group_of_.erase(node);
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  // Kernels that would read `value` or compute it in their loads: group ids of its (transitive, through inlined nodes) users.
  void consumers(const Value* value, std::unordered_set<const Node*>& into) const {
    for (const Node* user : value->users) {
      const auto group = group_of(user);
      if (group)
        into.insert(groups_[static_cast<std::size_t>(*group)].nodes.front());
      else if (placed_.count(user))
        into.insert(user);
      else
        consumers_cached(user, into);
    }
  }
  void consumers_cached(const Node* node, std::unordered_set<const Node*>& into) const {
    const auto at = consumers_of_.find(node);
    if (at != consumers_of_.end()) into.insert(at->second.begin(), at->second.end());
  }

  // Bytes and flops to compute one pass over `node`'s result from what is stored.
  double inline_cost(const Node& node, int depth = 0) const {
    double cost = 0;
    if (node.op->kind == OpKind::elementwise && node.op->scalar)
      cost += typical(node.output()->type.elements()) * node.op->scalar->flops * kBytesPerFlop;
    if (depth > 16) return cost;
    for (const Value* input : node.inputs) {
      if (!input) continue;
      const bool computed = input->producer && !group_of(input->producer) && !placed_.count(input->producer) &&
                            input->producer->op->kind != OpKind::generator;
      cost += computed ? inline_cost(*input->producer, depth + 1) : std::min(bytes_of(*input), bytes_of(*node.output()));
    }
    return cost;
  }

  bool feeds_contraction(const Value* value, bool windowed_only) const {
    for (const Node* user : value->users) {
      if (const auto group = group_of(user)) {
        const Node* anchor = groups_[static_cast<std::size_t>(*group)].anchor;
        if (user->op->name == "unfold") return true;
        if (anchor != user || !rereads_operands(*user)) continue;
        if (!windowed_only || user->op->kind == OpKind::window || is_windowed_conv(*user) || user->inputs[0] != value ||
            is_long_sum(*user))
          return true;
      } else if (!placed_.count(user) && user->op->kind != OpKind::elementwise) {
        for (const auto& output : user->outputs) {
          if (feeds_contraction(output.get(), windowed_only)) return true;
        }
      } else if (!placed_.count(user) && feeds_contraction(user->output(), windowed_only)) {
        return true;
      }
    }
    return false;
  }

  // Sums too long for a tile's left operand to be packed whole: it has to lie in memory.
  static bool is_long_sum(const Node& node) {
    if (node.op->name != "matmul") return false;
    const Shape& a = node.inputs[0]->type.shape;
    const Expr& inner = a[a.size() - (node.get<std::int64_t>("trans_a") != 0 ? 2 : 1)];
    return inner.upper() > kLongestPackedSum;
  }

  static bool is_windowed_conv(const Node& node) {
    if (node.op->name != "conv") return false;
    const Shape& w = node.inputs[1]->type.shape;
    return product(std::span(w).subspan(2)) != Expr(1) || node.get_or<std::int64_t>("group", 1) != 1;
  }

  bool wants_placement(const Node& concat, const std::unordered_set<const Node*>& readers) const {
    if (concat.op->name != "concat") return false;
    int placeable = 0;
    for (std::size_t i = 0; i < concat.inputs.size(); ++i) placeable += can_place(concat, i) ? 1 : 0;
    return placeable > 0 && (concat.inputs.size() > kLongestSelection || feeds_contraction(concat.output(), false) ||
                             readers.size() > 1 || graph_.is_output(concat.output()) || placed_in_.count(concat.output()));
  }

  // An operand that some kernel computes, or a concatenation placed itself, used once here and stored nowhere else yet.
  bool can_place(const Node& concat, std::size_t i) const {
    const Value* operand = concat.inputs[i];
    if (!operand->producer || graph_.is_output(operand) || placed_in_.count(operand)) return false;
    if (std::count(concat.inputs.begin(), concat.inputs.end(), operand) != 1) return false;
    const OpKind kind = operand->producer->op->kind;
    if (operand->producer->op->name == "concat") return true;
    return group_of(operand->producer) ? kind != OpKind::control : kind == OpKind::elementwise || kind == OpKind::indexing;
  }

  void materialise_rest() {
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      Node* node = nodes_[i];
      if (group_of(node) || node->op->name == "constant") continue;  // constants are in memory already
      const Value* value = node->output();
      std::unordered_set<const Node*> readers;
      for (const auto& output : node->outputs) consumers(output.get(), readers);
      if (options_.fuse && wants_placement(*node, readers)) {
        placed_.insert(node);
        for (std::size_t k = 0; k < node->inputs.size(); ++k) {
          if (can_place(*node, k)) placed_in_.emplace(node->inputs[k], node);
        }
        continue;
      }
      if (graph_.is_output(value) || placed_in_.count(value) || captured_by_loop(*node) || worth_storing(*node, readers)) {
        start_group(node, false);
        continue;
      }
      consumers_of_[node] = std::move(readers);
      chain_length_[node] = chain_length(*node) + 1;
    }
  }

  // The body of a loop reads captured values from memory; constants are there already.
  static bool captured_by_loop(const Node& node) {
    if (node.op->name == "constant") return false;
    return std::any_of(node.output()->users.begin(), node.output()->users.end(), [&](const Node* user) {
      if (user->op->kind != OpKind::control) return false;
      const auto carried = static_cast<std::ptrdiff_t>(user->get<std::int64_t>("carried"));
      return std::find(user->inputs.begin() + carried, user->inputs.end(), node.output()) != user->inputs.end();
    });
  }

  // Inlined nodes between `node` and the kernel that reads it.
  int chain_length(const Node& node) const {
    int length = 0;
    for (const Node* user : node.output()->users) {
      const auto at = chain_length_.find(user);
      if (at != chain_length_.end()) length = std::max(length, at->second);
    }
    return length;
  }

  bool worth_storing(const Node& node, const std::unordered_set<const Node*>& readers) {
    if (readers.empty() || !options_.fuse) return false;
    const OpKind kind = node.op->kind;
    if (kind == OpKind::generator) return false;
    if (node.op->name == "concat") return feeds_contraction(node.output(), false);
    if (node.op->name == "unfold" || node.op->name == "store") return true;  // made for the memory they stand for
    if (chain_length(node) >= kLongestChain) {
      why_not_[&node] = "a chain of inlined operators is kept short";
      return true;
    }
    if (kind == OpKind::movement) return false;
    if (kind == OpKind::elementwise && feeds_contraction(node.output(), true)) {
      why_not_[&node] = "a windowed or right operand would be computed again for every tap or tile";
      return true;
    }
    const double n = static_cast<double>(readers.size());
    const double stored = inline_cost(node) + bytes_of(*node.output()) * (1 + n) + kLaunchBytes;
    if (n * inline_cost(node) <= stored) return false;
    why_not_[&node] = fmt::format("storing it costs less than computing it again for {} readers", readers.size());
    return true;
  }

  void choose_outputs() {
    for (std::size_t id = 0; id < groups_.size(); ++id) {
      Group& group = groups_[id];
      for (const Node* node : group.nodes) {
        for (const auto& output : node->outputs) {
          const bool leaves = graph_.is_output(output.get()) ||
                              std::any_of(output->users.begin(), output->users.end(),
                                          [&](const Node* user) { return group_of(user) != static_cast<int>(id); });
          if (leaves) group.outputs.push_back(output.get());
        }
      }
    }
  }

  Grouping finish() {
    Grouping result;
    for (const std::size_t id : order_groups(graph_, groups_, group_of_, placed_in_)) {
      if (groups_[id].outputs.empty()) continue;
      for (const Value* output : groups_[id].outputs) result.stored.insert(output);
      result.groups.push_back(std::move(groups_[id]));
    }
    for (const Node* node : placed_) result.stored.insert(node->output());
    result.placed_concats = {placed_.begin(), placed_.end()};
    result.placed_in = std::move(placed_in_);
    result.why_not = std::move(why_not_);
    return result;
  }

  const Graph& graph_;
  const GroupOptions options_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, std::size_t> position_;
  std::vector<Group> groups_;
  std::unordered_map<const Node*, int> group_of_;
  std::unordered_set<const Node*> placed_;
  std::unordered_map<const Value*, const Node*> placed_in_;
  std::unordered_map<const Node*, std::unordered_set<const Node*>> consumers_of_;
  std::unordered_map<const Node*, int> chain_length_;
  std::unordered_map<const Node*, std::string> why_not_;
};

}  // namespace

bool is_bijective_movement(const Node& node) { return node.op->name == "reshape" || node.op->name == "transpose"; }

Grouping group_nodes(const Graph& graph, const GroupOptions& options) { return Grouper(graph, options).run(); }

}  // namespace oclc

// Reductions that share what they read become one kernel, and take the work on the rows that they read.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/fusion/group_draft.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Elementwise operators between the operands of reductions that become one kernel.
constexpr int kDeepestSibling = 4;
// Reductions of one kernel: each is a loop of its own where it needs another's result.
constexpr std::ptrdiff_t kMostSiblings = 16;

class Reductions {
 public:
  explicit Reductions(GroupDraft& draft) : draft_(draft) {}

  std::optional<int> join_sibling(Node* node) {
    if (node->op->kind != OpKind::reduction) return std::nullopt;
    for (; draft_.groups_noted < draft_.groups.size(); ++draft_.groups_noted) {
      const Node* anchor = draft_.groups[draft_.groups_noted].anchor;
      if (anchor && anchor->op->kind == OpKind::reduction) note(*anchor, static_cast<int>(draft_.groups_noted));
    }
    for (const int candidate : candidates(*node)) {
      const auto id = static_cast<std::size_t>(candidate);
      const Node* anchor = draft_.groups[id].anchor;
      if (!same_axes(*anchor, *node)) continue;
      const auto& members = draft_.groups[id].nodes;
      if (std::none_of(members.begin(), members.end(), [&](const Node* n) { return share_loads(*n, *node); })) continue;
      const std::vector<Node*> before = draft_.groups[id].nodes;
      draft_.add_to_group(node, static_cast<int>(id));
      inline_between(node->inputs[0], static_cast<int>(id), 0);
      if (draft_.is_cyclic(static_cast<int>(id))) {
        draft_.group_by_node.erase(node);
        draft_.restore(static_cast<int>(id), before);
        give_back_inlined();
        continue;
      }
      note(*node, candidate);
      return candidate;
    }
    return std::nullopt;
  }

  void grow_row(int id) {
    const Node* anchor = draft_.groups[static_cast<std::size_t>(id)].anchor;
    if (!anchor || !reduces_rows(*anchor)) return;
    const std::vector<Node*> before = draft_.groups[static_cast<std::size_t>(id)].nodes;
    std::unordered_set<const Value*> rows;
    std::vector<const Value*> inside;
    for (const Node* node : before) inside.push_back(node->output());
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < inside.size(); ++i) {
        for (Node* user : inside[i]->users) {
          if (!fits_row(*user, id, rows)) continue;
          draft_.add_to_group(user, id);
          rows.insert(user->output());
          inside.push_back(user->output());
          changed = true;
        }
      }
    }
    if (!trim_row(id, rows) || draft_.is_cyclic(id)) {
      draft_.restore(id, before);
      give_back_inlined();
    }
  }

 private:
  // The values of the operand's shape from which elementwise operators, at most kDeepestSibling of them, lead to it, and
  // itself.
  static std::vector<const Value*> near(const Node& reduction) {
    const Value* operand = reduction.inputs[0];
    std::vector<const Value*> found{operand}, level{operand};
    std::unordered_set<const Value*> seen{operand};
    for (int depth = 0; depth < kDeepestSibling; ++depth) {
      std::vector<const Value*> next;
      for (const Value* value : level) {
        if (!value->producer || value->producer->op->kind != OpKind::elementwise) continue;
        for (const Value* input : value->producer->inputs) {
          if (!input || !seen.insert(input).second) continue;
          next.push_back(input);
          if (input->type.shape == operand->type.shape) found.push_back(input);
        }
      }
      level = std::move(next);
    }
    return found;
  }

  void note(const Node& reduction, int id) {
    for (const Value* value : near(reduction)) draft_.reductions_near[value].insert(id);
  }

  // The groups that may hold a sibling, in order; those that are full are forgotten.
  std::set<int> candidates(const Node& node) {
    std::set<int> all;
    for (const Value* value : near(node)) {
      const auto known = draft_.reductions_near.find(value);
      if (known == draft_.reductions_near.end()) continue;
      std::erase_if(known->second, [&](int id) { return reductions_in(id) >= kMostSiblings; });
      all.insert(known->second.begin(), known->second.end());
    }
    return all;
  }

  std::ptrdiff_t reductions_in(int id) const {
    const auto& members = draft_.groups[static_cast<std::size_t>(id)].nodes;
    return std::count_if(members.begin(), members.end(), [](const Node* n) { return n->op->kind == OpKind::reduction; });
  }

  // Reductions of one shape, of which one reads what the other's operand is computed from.
  bool share_loads(const Node& one, const Node& other) const {
    if (one.op->kind != OpKind::reduction) return false;
    const Value *a = one.inputs[0], *b = other.inputs[0];
    return a->type.shape == b->type.shape && (is_computed_from(a, b, 0) || is_computed_from(b, a, 0) || share_operand(a, b));
  }

  static bool same_axes(const Node& a, const Node& b) {
    using Ints = std::vector<std::int64_t>;
    return a.has("axes") && b.has("axes") && a.get<Ints>("axes") == b.get<Ints>("axes") &&
           a.get_or<std::int64_t>("keepdims", 1) == b.get_or<std::int64_t>("keepdims", 1);
  }

  // Both computed elementwise from one tensor of their size.
  bool share_operand(const Value* a, const Value* b) const {
    const auto elementwise = [&](const Value* v) {
      return v->producer && v->producer->op->kind == OpKind::elementwise && !draft_.group_of(v->producer);
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
    if (!node || depth == kDeepestSibling || node->op->kind != OpKind::elementwise || draft_.group_of(node)) return false;
    return std::any_of(node->inputs.begin(), node->inputs.end(),
                       [&](const Value* input) { return is_computed_from(input, source, depth + 1); });
  }

  // A result of group `id` whose elements stand where those of its reductions do.
  bool is_where_reduced(const Value* value, int id) const {
    std::unordered_set<const Value*> asked;
    return is_where_reduced(value, id, asked);
  }

  // `asked`: values of which it is known, or asked already.
  bool is_where_reduced(const Value* value, int id, std::unordered_set<const Value*>& asked) const {
    const Node* node = value->producer;
    if (!node || draft_.group_of(node) != id) return false;
    if (!asked.insert(value).second) return true;
    const Node* anchor = draft_.groups[static_cast<std::size_t>(id)].anchor;
    if (node->op->kind == OpKind::reduction) return node->get_or<std::int64_t>("keepdims", 1) != 0;
    return node->op->kind == OpKind::elementwise && value->type.shape == anchor->output()->type.shape &&
           std::all_of(node->inputs.begin(), node->inputs.end(), [&](const Value* input) {
             return !input->producer || draft_.group_of(input->producer) != id || is_where_reduced(input, id, asked);
           });
  }

  // Notes the elementwise operators between results of group `id` and `value`, an operand of the group: the group computes them
  // itself, so that no kernel may stand between. True if there are any.
  bool inline_between(const Value* value, int id, int depth) {
    const Node* node = value->producer;
    if (!node) return false;
    if (draft_.group_of(node)) return is_where_reduced(value, id);
    const auto& users = value->users;
    const bool plain = depth < kDeepestSibling && node->op->kind == OpKind::elementwise && node->op->scalar &&
                       node->op->scalar->flops <= kCheapFlops && !draft_.graph.is_output(value) &&
                       std::all_of(users.begin(), users.end(), [](const Node* user) {
                         return user->op->kind == OpKind::elementwise || user->op->kind == OpKind::reduction;
                       });
    if (!plain) return false;
    bool found = false;
    for (const Value* input : node->inputs) found = inline_between(input, id, depth + 1) || found;
    if (found) inline_node(node);
    return found;
  }

  void inline_node(const Node* node) {
    if (draft_.inlined.insert(node).second) inlined_now_.push_back(node);
  }

  void give_back_inlined() {
    for (const Node* node : inlined_now_) draft_.inlined.erase(node);
    inlined_now_.clear();
  }

  static bool reduces_rows(const Node& node) {
    if (node.op->kind != OpKind::reduction) return false;
    const Value* x = node.inputs[0];
    if (!node.has("axes") || node.get_or<std::int64_t>("keepdims", 1) == 0 || !x->layout.is_row_major() ||
        x->type.shape == node.output()->type.shape)
      return false;
    const auto& axes = node.get<std::vector<std::int64_t>>("axes");
    const auto rank = static_cast<std::int64_t>(x->type.rank()), count = static_cast<std::int64_t>(axes.size());
    return std::all_of(axes.begin(), axes.end(), [&](std::int64_t a) { return a >= rank - count; }) &&
           typical(node.output()->type.elements()) >= cost::kFewestFusedRows;
  }

  bool fits_row(const Node& user, int id, const std::unordered_set<const Value*>& rows) {
    const Value* x = draft_.groups[static_cast<std::size_t>(id)].anchor->inputs[0];
    const Value* result = user.outputs.empty() ? nullptr : user.output();
    if (user.op->kind != OpKind::elementwise || draft_.is_full(id) || draft_.group_of(&user) || draft_.inlined.count(&user) ||
        !(result->type.shape == x->type.shape) || !result->layout.is_row_major())
      return false;
    return std::all_of(user.inputs.begin(), user.inputs.end(), [&](const Value* input) {
      return rows.count(input) || is_where_reduced(input, id) ||
             (!(input->producer && draft_.group_of(input->producer) == id) && !draft_.needs_back({input}, id));
    });
  }

  // Gives back what the kernel would store although others can compute it. False if no or too many results are left.
  bool trim_row(int id, const std::unordered_set<const Value*>& rows) {
    constexpr int kMostResults = 2;
    int results = 0;
    auto& nodes = draft_.groups[static_cast<std::size_t>(id)].nodes;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      Node* node = nodes[i];
      const Value* value = node->output();
      if (!rows.count(value)) continue;
      const auto all_users = [&](auto test) { return std::all_of(value->users.begin(), value->users.end(), test); };
      const auto in_group = [&](const Node* user) { return draft_.group_of(user) == id; };
      const bool output = draft_.graph.is_output(value);
      if (!output && all_users(in_group)) continue;
      const bool used_inside = !all_users([&](const Node* user) { return !in_group(user); });
      const bool cheap = node->op->scalar && node->op->scalar->flops <= kCheapFlops;
      const bool computable = !output && all_users([](const Node* user) {
        return user->op->kind == OpKind::elementwise || user->op->kind == OpKind::reduction;
      });
      if (computable && (used_inside ? cheap : readers_of(value) < 2)) {
        draft_.group_by_node.erase(node);
        nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
        if (used_inside) inline_node(node);
      } else if (!output && readers_of(value) < 2) {
        return false;  // its only reader may compute it
      } else {
        ++results;
      }
    }
    return results > 0 && results <= kMostResults;
  }

  // Kernels that read `value`, through elementwise operators and movement too, as far as is known now: 2 stands for more.
  std::size_t readers_of(const Value* value) const {
    std::unordered_set<int> readers;
    std::unordered_set<const Value*> seen;
    std::vector<const Value*> stack{value};
    while (!stack.empty() && readers.size() < 2) {
      const Value* v = stack.back();
      stack.pop_back();
      if (!seen.insert(v).second) continue;
      for (const Node* user : v->users) {
        if (const auto group = draft_.group_of(user))
          readers.insert(*group);
        else
          for (const auto& output : user->outputs) stack.push_back(output.get());
      }
    }
    return readers.size();
  }

  GroupDraft& draft_;
  std::vector<const Node*> inlined_now_;  // by what may still be undone
};

}  // namespace

std::optional<int> join_sibling(GroupDraft& draft, Node* node) { return Reductions(draft).join_sibling(node); }

void grow_row(GroupDraft& draft, int id) { Reductions(draft).grow_row(id); }

}  // namespace oclc

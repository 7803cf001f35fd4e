#include "compiler/kernels/fusion/group.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/kernels/fusion/group_draft.h"
#include "compiler/kernels/fusion/group_order.h"
#include "compiler/ops/user_op.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Results that are stored beside what they are made of.
constexpr std::size_t kMostShares = 2;

bool is_anchor_kind(OpKind kind) {
  return kind == OpKind::contraction || kind == OpKind::window || kind == OpKind::reduction || kind == OpKind::row ||
         kind == OpKind::scan || kind == OpKind::control || kind == OpKind::host || kind == OpKind::opaque;
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
  Grouper(const Graph& graph, const GroupOptions& options) : draft_(graph, options) {}

  Grouping run() {
    if (draft_.options.fuse) {
      for (Node* node : draft_.all_nodes) {
        if (!is_anchor_kind(node->op->kind)) continue;
        const auto joined = join_sibling(draft_, node);
        grow(joined ? *joined : draft_.start_group(node, true));
      }
      for (std::size_t id = 0; id < draft_.groups.size(); ++id) grow_row(draft_, static_cast<int>(id));
      group_updates();
    } else {
      for (Node* node : draft_.all_nodes) {
        if (node->op->name == "reshape" || node->op->kind == OpKind::generator) continue;
        draft_.start_group(node, is_anchor_kind(node->op->kind));
      }
    }
    store_rest(draft_);
    choose_outputs();
    return finish();
  }

 private:
  bool fits_epilogue(const Node& user, int id, const std::unordered_set<const Value*>& inside) {
    if (draft_.is_full(id) || draft_.group_of(&user) || draft_.inlined.count(&user) || user.has("recompute"))
      return false;  // which comes later
    if (is_bijective_movement(user)) return true;
    if (user.op->kind != OpKind::elementwise || is_left_to_reductions(user, inside)) return false;
    const Shape& shape = user.output()->type.shape;
    bool same_shape = false;
    const Value* stored = nullptr;
    for (const Value* input : user.inputs) {
      if (inside.count(input)) {
        const Value* root = root_of(input, id);
        if (stored && root && root != stored) return false;  // a body stores them one after another
        stored = root ? root : stored;
        if (!same_but_for_leading_units(input->type.shape, shape)) return false;
        same_shape = true;
      } else if (draft_.depends_on(input, id)) {
        return false;
      }
    }
    return same_shape;
  }

  // The output of the group's user-written body that a value inside of the group is made of; null: it has no such body.
  const Value* root_of(const Value* value, int id) const {
    const Node* anchor = draft_.groups[static_cast<std::size_t>(id)].anchor;
    if (!anchor || !body_of(*anchor)) return nullptr;
    while (value->producer != anchor) {
      const auto& inputs = value->producer->inputs;
      const auto next = std::find_if(inputs.begin(), inputs.end(),
                                     [&](const Value* v) { return v && v->producer && draft_.group_of(v->producer) == id; });
      OCLC_CHECK(next != inputs.end(), "a value inside of a group that nothing in it makes");
      value = *next;
    }
    return value;
  }

  // Made of what is stored for a reduction anyway, and read by reductions alone: computed in their loads it is never stored,
  // and they become one kernel.
  bool is_left_to_reductions(const Node& user, const std::unordered_set<const Value*>& inside) const {
    const auto reduces = [](const Node* n) { return n->op->kind == OpKind::reduction; };
    const auto& readers = user.output()->users;
    return !readers.empty() && !draft_.graph.is_output(user.output()) && std::all_of(readers.begin(), readers.end(), reduces) &&
           std::all_of(user.inputs.begin(), user.inputs.end(), [&](const Value* input) {
             return !inside.count(input) || std::any_of(input->users.begin(), input->users.end(), reduces);
           });
  }

  void grow(int id) {
    Node* anchor = draft_.groups[static_cast<std::size_t>(id)].anchor;
    const OpKind kind = anchor ? anchor->op->kind : OpKind::elementwise;
    if (kind == OpKind::control || kind == OpKind::scan || kind == OpKind::host) return;
    std::unordered_set<const Value*> inside;
    for (const Node* node : draft_.groups[static_cast<std::size_t>(id)].nodes) {
      const UserBody* body = body_of(*node);
      for (const auto& output : node->outputs) {
        // What a pointer stores, no code sees an element of.
        if (!body || !body->outputs[static_cast<std::size_t>(output->index)].pointer) inside.insert(output.get());
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<Node*> candidates;
      for (const Value* value : inside) candidates.insert(candidates.end(), value->users.begin(), value->users.end());
      std::sort(candidates.begin(), candidates.end(),
                [&](const Node* a, const Node* b) { return draft_.position.at(a) < draft_.position.at(b); });
      candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
      for (Node* user : candidates) {
        if (!fits_epilogue(*user, id, inside)) continue;
        draft_.append(user, id);
        inside.insert(user->output());
        changed = true;
      }
    }
    trim_movement(id);
    trim_shares(id);
  }

  // Several results of one value that are all moved before they are read, as shares of a pooling window are: their readers
  // compute them from the value, which is stored once.
  void trim_shares(int id) {
    // On an H200, where operands are laid out, shares were as fast.
    if (draft_.options.lays_out_operands) return;
    auto& nodes = draft_.groups[static_cast<std::size_t>(id)].nodes;
    const auto is_share = [&](const Node* n) {
      const auto& readers = n->output()->users;
      return draft_.group_of(n) == id && n->op->kind == OpKind::elementwise && !draft_.graph.is_output(n->output()) &&
             std::all_of(readers.begin(), readers.end(), [&](const Node* r) {
               return r->op->kind == OpKind::movement && draft_.group_of(r) != id && !is_bijective_movement(*r);
             });
    };
    const std::vector<Node*> before = nodes;
    for (const Node* node : before) {
      if (node->outputs.size() != 1) continue;
      std::vector<Node*> shares;
      for (Node* user : node->output()->users) {
        if (is_share(user)) shares.push_back(user);
      }
      if (shares.size() <= kMostShares) continue;
      for (Node* share : shares) {
        draft_.group_by_node.erase(share);
        std::erase(nodes, share);
      }
    }
  }

  // A result of the graph, as it is or reshaped.
  bool is_result(const Value* value) const {
    return draft_.graph.is_output(value) || std::any_of(value->users.begin(), value->users.end(), [&](const Node* user) {
             return user->op->name == "reshape" && draft_.graph.is_output(user->output());
           });
  }

  // Elementwise results of the graph over one iteration space become one kernel: an optimizer's new moments and
  // parameters, what a recurrent cell carries on.
  void group_updates() {
    std::vector<int> made;
    for (Node* node : draft_.all_nodes) {
      if (draft_.group_of(node) || node->op->kind != OpKind::elementwise || !is_result(node->output())) continue;
      const auto home = std::find_if(made.begin(), made.end(), [&](int id) { return joins(*node, id); });
      if (home == made.end()) {
        made.push_back(draft_.start_group(node, false));
        grow(made.back());
      } else {
        const std::vector<Node*> before = draft_.groups[static_cast<std::size_t>(*home)].nodes;
        draft_.add_to_group(node, *home);
        grow(*home);
        if (draft_.is_cyclic(*home)) draft_.restore(*home, before);
      }
    }
  }

  bool joins(const Node& node, int id) {
    const Group& group = draft_.groups[static_cast<std::size_t>(id)];
    return !draft_.is_full(id) && group.nodes.front()->output()->type.shape == node.output()->type.shape &&
           !draft_.depends_on(node.output(), id);
  }

  // Movement at the end of a group stays only where its result is what the outside reads; else the readers apply it themselves.
  void trim_movement(int id) {
    auto& nodes = draft_.groups[static_cast<std::size_t>(id)].nodes;
    std::sort(nodes.begin(), nodes.end(),
              [&](const Node* a, const Node* b) { return draft_.position.at(a) < draft_.position.at(b); });
    for (std::size_t i = nodes.size(); i-- > 1;) {
      Node* node = nodes[i];
      if (!is_bijective_movement(*node)) continue;
      const bool feeds_inside = std::any_of(node->output()->users.begin(), node->output()->users.end(),
                                            [&](const Node* u) { return draft_.group_of(u) == id; });
      if (feeds_inside || draft_.graph.is_output(node->output())) continue;
      const Value* source = node->inputs[0];
      const bool source_leaves =
          draft_.graph.is_output(source) || std::any_of(source->users.begin(), source->users.end(),
                                                        [&](const Node* u) { return u != node && draft_.group_of(u) != id; });
      const bool siblings = std::count_if(source->users.begin(), source->users.end(), [&](const Node* u) {
                              return draft_.group_of(u) == id && is_bijective_movement(*u);
                            }) > 1;
      if (!source_leaves && !siblings) continue;
      draft_.group_by_node.erase(node);
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void choose_outputs() {
    for (std::size_t id = 0; id < draft_.groups.size(); ++id) {
      Group& group = draft_.groups[id];
      for (const Node* node : group.nodes) {
        for (const auto& output : node->outputs) {
          const UserBody* body = body_of(*node);
          const bool leaves = (body && body->outputs[static_cast<std::size_t>(output->index)].pointer) ||
                              draft_.graph.is_output(output.get()) ||
                              std::any_of(output->users.begin(), output->users.end(),
                                          [&](const Node* user) { return draft_.group_of(user) != static_cast<int>(id); });
          if (leaves) group.outputs.push_back(output.get());
        }
      }
    }
  }

  Grouping finish() {
    Grouping result;
    for (const std::size_t id : order_groups(draft_.graph, draft_.groups, draft_.group_by_node, draft_.placed_in)) {
      if (draft_.groups[id].outputs.empty()) continue;
      for (const Value* output : draft_.groups[id].outputs) result.stored.insert(output);
      result.groups.push_back(std::move(draft_.groups[id]));
    }
    for (const Node* node : draft_.placed) result.stored.insert(node->output());
    result.placed_concats = {draft_.placed.begin(), draft_.placed.end()};
    result.placed_in = std::move(draft_.placed_in);
    result.why_not = std::move(draft_.why_not);
    return result;
  }

  GroupDraft draft_;
};

}  // namespace

bool is_bijective_movement(const Node& node) { return node.op->name == "reshape" || node.op->name == "transpose"; }

Grouping group_nodes(const Graph& graph, const GroupOptions& options) { return Grouper(graph, options).run(); }

}  // namespace oclc

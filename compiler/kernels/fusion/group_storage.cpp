// Which values are in memory: by a cost model in bytes and flops.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ir/op_def.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/fusion/group_draft.h"
#include "compiler/ops/user_op.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// A concatenation of more operands is stored: readers would select among all of them for every element.
constexpr std::size_t kLongestSelection = 8;
// Longest sum of which a tile of the left operand fits the cache.
constexpr std::int64_t kLongestPackedSum = 8192;
// Operators before a value beyond which its cost counts no more.
constexpr int kDeepestCost = 16;
// Longest chain of inlined nodes: bounds the size of one kernel and the depth of its lowering.
constexpr int kLongestChain = 128;

bool rereads_operands(const Node& node) {
  return node.op->kind == OpKind::contraction || node.op->kind == OpKind::window || node.op->kind == OpKind::opaque;
}

class Storing {
 public:
  explicit Storing(GroupDraft& draft) : draft_(draft) {}

  void run() {
    find_gathers();
    for (std::size_t i = draft_.all_nodes.size(); i-- > 0;) {
      Node* node = draft_.all_nodes[i];
      if (draft_.group_of(node) || node->op->name == "constant") continue;  // constants are in memory already
      const Value* value = node->output();
      std::unordered_set<const Node*> readers;
      for (const auto& output : node->outputs) consumers(output.get(), readers);
      if (draft_.options.fuse && wants_placement(*node, readers)) {
        draft_.placed.insert(node);
        for (std::size_t k = 0; k < node->inputs.size(); ++k) {
          if (can_place(*node, k)) draft_.placed_in.emplace(node->inputs[k], node);
        }
        continue;
      }
      if (draft_.graph.is_output(value) || draft_.placed_in.count(value) || captured_by_loop(*node) || is_pointed_to(value) ||
          worth_storing(*node, readers)) {
        draft_.start_group(node, false);
        continue;
      }
      consumers_of_[node] = std::move(readers);
      chain_length_[node] = chain_length(*node) + 1;
      computed_[node] = elements_computed(*node);
    }
  }

 private:
  // Kernels that would read `value` or compute it in their loads: group ids of its (transitive, through inlined nodes)
  // users.
  void consumers(const Value* value, std::unordered_set<const Node*>& into) const {
    for (const Node* user : value->users) {
      const auto group = draft_.group_of(user);
      if (group)
        into.insert(draft_.groups[static_cast<std::size_t>(*group)].nodes.front());
      else if (draft_.placed.count(user))
        into.insert(user);
      else
        consumers_cached(user, into);
    }
  }
  void consumers_cached(const Node* node, std::unordered_set<const Node*>& into) const {
    const auto at = consumers_of_.find(node);
    if (at != consumers_of_.end()) into.insert(at->second.begin(), at->second.end());
  }

  // Bytes and flops to compute one pass over `node`'s result from what is stored. What lies before `node` keeps its place while
  // run() comes from the graph's end, so that a cost is computed once.
  double inline_cost(const Node& node, int depth = 0) {
    const std::pair<const Node*, int> key(&node, depth);
    if (const auto known = inline_costs_.find(key); known != inline_costs_.end()) return known->second;
    return inline_costs_[key] = sum_of_costs(node, depth);
  }

  double sum_of_costs(const Node& node, int depth) {
    double cost = 0;
    if (node.op->kind == OpKind::elementwise && node.op->scalar)
      cost += typical(node.output()->type.elements()) * node.op->scalar->flops * draft_.options.costs.bytes_per_flop;
    if (depth > kDeepestCost) return cost;
    for (const Value* input : node.inputs) {
      if (!input) continue;
      const bool computed = input->producer && !draft_.group_of(input->producer) && !draft_.placed.count(input->producer) &&
                            input->producer->op->kind != OpKind::generator;
      cost += computed ? inline_cost(*input->producer, depth + 1)
                       : std::min(typical_bytes(input->type), typical_bytes(node.output()->type));
    }
    return cost;
  }

  bool feeds_contraction(const Value* value, bool windowed_only, bool again = false) const {
    std::unordered_set<const Value*> seen;
    return feeds_contraction(value, windowed_only, again, seen);
  }

  bool feeds_contraction(const Value* value, bool windowed_only, bool again, std::unordered_set<const Value*>& seen) const {
    if (!seen.insert(value).second) return false;
    for (const Node* user : value->users) {
      if (const auto group = draft_.group_of(user)) {
        const Node* anchor = draft_.groups[static_cast<std::size_t>(*group)].anchor;
        // What is computed again for the backward pass is so for each tap too: a few flops, hidden by what unfolding writes.
        if (user->op->name == "unfold") {
          if (again) continue;
          return true;
        }
        if (anchor != user || !rereads_operands(*user)) continue;
        if (body_of(*user)) {
          if (rereads(*user, value)) return true;
          continue;
        }
        if (!windowed_only || user->op->kind == OpKind::window) return true;
        if (is_windowed_conv(*user) ? !computes_window(*user, value)
                                    : !computes_operand(*user, value) && (user->inputs[0] != value || is_long_sum(*user)))
          return true;
      } else if (!draft_.placed.count(user) && user->op->kind != OpKind::elementwise) {
        for (const auto& output : user->outputs) {
          if (feeds_contraction(output.get(), windowed_only, again, seen)) return true;
        }
      } else if (!draft_.placed.count(user) && feeds_contraction(user->output(), windowed_only, again, seen)) {
        return true;
      }
    }
    return false;
  }

  // A body reads each element once where it has a point for each, as far as its sizes tell.
  static bool rereads(const Node& user, const Value* value) {
    return !(value->type.elements() == product(as_user_op(*user.op)->space(user).extents));
  }

  // Its operands are laid out and packed by kernels that read each element once.
  bool lays_out(const Node& user) const {
    return draft_.options.lays_out_operands && user.op->kind == OpKind::contraction && user.output()->type.is_static() &&
           std::all_of(user.inputs.begin(), user.inputs.end(), [](const Value* v) { return !v || v->type.is_static(); });
  }

  // Such an operand, of what few flops make of two tensors, is computed by those kernels.
  bool computes_operand(const Node& user, const Value* value) const {
    return lays_out(user) && is_light(value, cost::kOperandFlops, 2);
  }

  // A depthwise convolution of what few flops make of one tensor: memory is read once, caches answer its taps.
  bool computes_window(const Node& user, const Value* value) const {
    return lays_out(user) && user.op->name == "conv" && user.inputs[0] == value &&
           value->type.shape[1] == Expr(user.get_or<std::int64_t>("group", 1)) && user.inputs[1]->type.shape[1] == Expr(1) &&
           is_light(value, cost::kWindowFlops, 1);
  }

  // At most so many flops an element, of elementwise operators, and stored tensors of its size make `value`.
  bool is_light(const Value* value, double most_flops, int most_tensors) const {
    double flops = 0;
    int tensors = 0;
    count_sources(value, *value, flops, tensors);
    return flops <= most_flops && tensors <= most_tensors;
  }

  void count_sources(const Value* value, const Value& whole, double& flops, int& tensors) const {
    const Node* node = value->producer;
    if (typical_bytes(value->type) * cost::kSmallOperand < typical_bytes(whole.type) || flops > cost::kOperandFlops) return;
    const bool moves = node && node->op->kind == OpKind::movement && node->inputs.size() == 1;
    if (!node || draft_.group_of(node) || !(moves || (node->op->kind == OpKind::elementwise && node->op->scalar))) {
      ++tensors;
      return;
    }
    flops += moves ? 0 : node->op->scalar->flops;
    for (const Value* input : node->inputs) count_sources(input, whole, flops, tensors);
  }

  // visit(node, what it reads) for nodes that have a group and read `value`, as it is or moved.
  template <class Visit>
  void grouped_readers(const Value* value, const Visit& visit) const {
    for (const Node* user : value->users) {
      if (draft_.group_of(user))
        visit(*user, value);
      else if (is_bijective_movement(*user) && !draft_.placed.count(user))
        grouped_readers(user->output(), visit);
    }
  }

  // Products that read `value`, as it is or moved, as their left operand, and would lay it out.
  void products_on_the_left(const Value* value, std::unordered_set<const Node*>& found) const {
    grouped_readers(value, [&](const Node& user, const Value* read) {
      if (draft_.groups[static_cast<std::size_t>(*draft_.group_of(&user))].anchor == &user && lays_out(user) &&
          user.inputs[0] == read && !is_windowed_conv(user))
        found.insert(&user);
    });
  }

  // Products that copy `node`'s result in pieces, if there are several, and would compute it of several tensors meanwhile.
  double computed_copies(const Node& node) const {
    if (!draft_.options.copies_operands || node.op->kind != OpKind::elementwise ||
        is_light(node.output(), cost::kOperandFlops, 1))
      return 0;
    int products = 0;
    grouped_readers(node.output(),
                    [&](const Node& user, const Value*) { products += user.op->kind == OpKind::contraction ? 1 : 0; });
    return products > 1 ? products : 0;
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
    return placeable > 0 &&
           (concat.inputs.size() > kLongestSelection || concat.has(kMadeInPlace) || feeds_contraction(concat.output(), false) ||
            readers.size() > 1 || draft_.graph.is_output(concat.output()) || draft_.placed_in.count(concat.output()));
  }

  // An operand that some kernel computes, or a concatenation placed itself, used once here and stored nowhere else yet.
  bool can_place(const Node& concat, std::size_t i) const {
    const Value* operand = concat.inputs[i];
    if (!operand->producer || draft_.graph.is_output(operand) || draft_.placed_in.count(operand)) return false;
    const UserBody* body = body_of(*operand->producer);
    if (is_pointed_to(operand) || (body && body->outputs[static_cast<std::size_t>(operand->index)].pointer)) return false;
    if (std::count(concat.inputs.begin(), concat.inputs.end(), operand) != 1) return false;
    const OpKind kind = operand->producer->op->kind;
    if (operand->producer->op->name == "concat") return true;
    return draft_.group_of(operand->producer) ? kind != OpKind::control && kind != OpKind::host
                                              : kind == OpKind::elementwise || kind == OpKind::indexing;
  }

  // The body of a loop reads captured values from memory, the host what is to be a dimension and its operands; constants are
  // there already.
  static bool captured_by_loop(const Node& node) {
    if (node.op->name == "constant") return false;
    return std::any_of(node.output()->users.begin(), node.output()->users.end(), [&](const Node* user) {
      if (user->op->kind != OpKind::control && user->op->kind != OpKind::host) return false;
      const auto carried = static_cast<std::ptrdiff_t>(user->get_or<std::int64_t>("carried", 0));
      return std::find(user->inputs.begin() + carried, user->inputs.end(), node.output()) != user->inputs.end();
    });
  }

  static bool is_pointed_to(const Value* value) {
    return std::any_of(value->users.begin(), value->users.end(), [&](const Node* user) {
      const UserBody* body = body_of(*user);
      for (std::size_t i = 0; body && i < user->inputs.size(); ++i) {
        if (user->inputs[i] == value && operand_of_input(*body, i).pointer) return true;
      }
      return false;
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

  // Elements of `node`'s result that its readers compute if it is not stored: one is computed again wherever it is broadcast
  // to.
  double elements_computed(const Node& node) const {
    double sum = 0;
    for (const auto& output : node.outputs) {
      for (const Node* user : output->users) {
        const auto inlined = computed_.find(user);
        sum += inlined != computed_.end() ? inlined->second : typical(user->outputs[0]->type.elements());
      }
    }
    return sum;
  }

  // Nodes that readers would compute with loads at positions that a tensor gives, one by one.
  void find_gathers() {
    for (const Node* node : draft_.all_nodes) {
      const OpKind kind = node->op->kind;
      const bool passes_on = kind == OpKind::elementwise || kind == OpKind::movement;
      if (kind == OpKind::indexing || (passes_on && std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) {
                                         return v && v->producer && !draft_.group_of(v->producer) &&
                                                gathers_.count(v->producer);
                                       })))
        gathers_.insert(node);
    }
  }

  // How often readers compute all of `node`'s result.
  double passes(const Node& node, std::size_t readers) const {
    const auto n = static_cast<double>(readers);
    if (node.op->kind != OpKind::elementwise || gathers_.count(&node) == 0) return n;
    return std::max(n, elements_computed(node) / std::max(1.0, typical(node.output()->type.elements())));
  }

  bool worth_storing(const Node& node, const std::unordered_set<const Node*>& readers) {
    if (readers.empty() || !draft_.options.fuse || draft_.inlined.count(&node)) return false;
    const OpKind kind = node.op->kind;
    if (kind == OpKind::generator) return false;
    if (node.op->name == "concat") return feeds_contraction(node.output(), false);
    if (node.op->name == "unfold" && node.has("gathered")) return false;     // made for the loads that it describes
    if (node.op->name == "unfold" || node.op->name == "store") return true;  // made for the memory they stand for
    if (chain_length(node) >= kLongestChain) {
      draft_.why_not[&node] = "a chain of inlined operators is kept short";
      return true;
    }
    if (kind == OpKind::movement) return false;
    if (kind == OpKind::elementwise && feeds_contraction(node.output(), true, node.has("recompute"))) {
      draft_.why_not[&node] = "a windowed or right operand would be computed again for every tap or tile";
      return true;
    }
    const double n = static_cast<double>(readers.size()), bytes = typical_bytes(node.output()->type);
    const double stored = inline_cost(node) + bytes * (1 + n) + draft_.options.costs.launch_bytes;
    std::unordered_set<const Node*> laid_out;
    if (kind == OpKind::elementwise && readers.size() > 1) products_on_the_left(node.output(), laid_out);
    const double copies = static_cast<double>(laid_out.size()) * (2 * bytes + draft_.options.costs.launch_bytes) +
                          computed_copies(node) * cost::kComputedCopy * bytes;
    if (passes(node, readers.size()) * inline_cost(node) + copies <= stored) return false;
    draft_.why_not[&node] = fmt::format("storing it costs less than computing it again for {} readers", readers.size());
    return true;
  }

  GroupDraft& draft_;
  std::unordered_map<const Node*, std::unordered_set<const Node*>> consumers_of_;
  std::unordered_map<const Node*, int> chain_length_;
  std::unordered_map<const Node*, double> computed_;
  std::unordered_set<const Node*> gathers_;
  std::map<std::pair<const Node*, int>, double> inline_costs_;  // by node and depth
};

}  // namespace

void store_rest(GroupDraft& draft) { Storing(draft).run(); }

}  // namespace oclc

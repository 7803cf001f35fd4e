// Moves reshapes, transposes and expands behind the arithmetic that follows them, where it works on their operand as well: they
// meet and cancel, masks are computed once instead of once per repetition, and the rows of a matrix product keep the order in
// which they are stored. Without it, exporters' flattening around each linear layer and sequence-first attention would leave
// index maps, or copies, on both sides of each matrix product.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/movement_chain.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

// f(expand(a), b) = expand(f(a, b)) where the expands repeat what no other operand has.
bool expand_after_elementwise(Graph& graph, Node* node) {
  if (node->op->kind != OpKind::elementwise) return false;
  std::vector<Value*> inputs = node->inputs;
  bool stripped = false;
  for (Value*& input : inputs) {
    if (!producer(input, "expand")) continue;
    input = input->producer->inputs[0];
    stripped = true;
  }
  if (!stripped) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.call(node->op->name, std::move(inputs), node->attributes));
}

// How many trailing axes a reshape or transpose leaves as they are.
std::size_t kept_suffix(const Node* movement) {
  const Shape &from = movement->inputs[0]->type.shape, &to = movement->output()->type.shape;
  std::size_t count = 0;
  if (is(movement, "transpose")) {
    const Ints& perm = movement->get<Ints>("perm");
    while (count < perm.size() && perm[perm.size() - 1 - count] == static_cast<std::int64_t>(perm.size() - 1 - count)) ++count;
  } else {
    while (count < std::min(from.size(), to.size()) && from[from.size() - 1 - count] == to[to.size() - 1 - count]) ++count;
  }
  return count;
}

bool is_movement(const Value* value) { return producer(value, "reshape") || producer(value, "transpose"); }

bool same_movement(const Node* a, const Node* b) {
  if (a->op != b->op || !(a->inputs[0]->type.shape == b->inputs[0]->type.shape) ||
      !(a->output()->type.shape == b->output()->type.shape))
    return false;
  return is(a, "reshape") || a->get<Ints>("perm") == b->get<Ints>("perm");
}

// The same movement of another value.
Value* moved(Rewriter& rewrite, const Node* movement, Value* value) {
  if (is(movement, "transpose")) return rewrite.transpose(value, movement->get<Ints>("perm"));
  return rewrite.reshape(value, movement->output()->type.shape);
}

// f(move(a), move(b), c) = move(f(a, b, c)) where c covers at most the axes that stay.
bool movement_after_elementwise(Graph& graph, Node* node) {
  if (node->op->kind != OpKind::elementwise) return false;
  for (Value* candidate : node->inputs) {
    if (!is_movement(candidate) || !(candidate->type.shape == node->output()->type.shape)) continue;
    const Node* movement = candidate->producer;
    const std::size_t suffix = kept_suffix(movement);
    std::vector<Value*> inputs;
    for (Value* input : node->inputs) {
      if (is_movement(input) && same_movement(input->producer, movement))
        inputs.push_back(input->producer->inputs[0]);
      else if (input->type.rank() <= suffix)
        inputs.push_back(input);
    }
    if (inputs.size() != node->inputs.size()) continue;
    Rewriter rewrite(graph, node);
    Value* result = rewrite.call(node->op->name, std::move(inputs), node->attributes);
    if (!(result->type.shape == movement->inputs[0]->type.shape)) return rewrite.give_up();
    return rewrite.replace(moved(rewrite, movement, result));
  }
  return false;
}

// softmax and normalisation over axes that stay.
bool movement_after_row(Graph& graph, Node* node) {
  if (node->op->kind != OpKind::row || !is_movement(node->inputs[0])) return false;
  const Node* movement = node->inputs[0]->producer;
  const auto axis = static_cast<std::size_t>(node->get<std::int64_t>("axis"));
  const std::size_t rank = node->inputs[0]->type.rank(), behind = rank - axis;  // axes from the first normalised one on
  if (behind > kept_suffix(movement)) return false;
  Rewriter rewrite(graph, node);
  std::vector<Value*> inputs = node->inputs;
  inputs[0] = movement->inputs[0];
  Attributes attributes = node->attributes;
  attributes["axis"] = static_cast<std::int64_t>(inputs[0]->type.rank() - behind);
  return rewrite.replace(moved(rewrite, movement, rewrite.call(node->op->name, std::move(inputs), std::move(attributes))));
}

// The rows of matmul(a, b), b a matrix, in the order and grouping in which a's source stores them; what regroups them follows.
bool rows_as_stored(Graph& graph, Node* node) {
  if (!is(node, "matmul") || node->get<std::int64_t>("trans_a") != 0 || node->inputs[1]->type.rank() != 2) return false;
  Value* a = node->inputs[0];
  const MovementChain chain = MovementChain::above(a);
  if (chain.length == 0) return false;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i + 1 < chain.to.size(); ++i) rows.insert(rows.end(), chain.to[i].begin(), chain.to[i].end());
  if (rows.empty()) return false;
  std::sort(rows.begin(), rows.end());
  MovementChain stored = chain;
  stored.to.clear();
  const auto axis_of_atom = [&](std::size_t atom) {
    return std::find_if(chain.from.begin(), chain.from.end(),
                        [&](const auto& axis) { return std::find(axis.begin(), axis.end(), atom) != axis.end(); });
  };
  for (const std::size_t atom : rows) {
    const bool joins = !stored.to.empty() && stored.to.back().back() + 1 == atom &&
                       axis_of_atom(stored.to.back().back()) == axis_of_atom(atom);
    if (!joins) stored.to.emplace_back();
    stored.to.back().push_back(atom);
  }
  const std::size_t groups = stored.to.size();
  stored.to.push_back(chain.to.back());
  if (stored.to == chain.to || stored.cost() > chain.cost()) return false;
  Rewriter rewrite(graph, node);
  Value* product = rewrite.call("matmul", {stored.build(rewrite), node->inputs[1]}, node->attributes);
  // Back to the rows' order: the product's atoms are the groups' atoms, then its columns.
  MovementChain back;
  back.source = product;
  std::vector<std::size_t> number(chain.atoms.size());
  for (std::size_t g = 0; g < groups; ++g) {
    back.from.emplace_back();
    for (const std::size_t atom : stored.to[g]) {
      number[atom] = back.atoms.size();
      back.from.back().push_back(back.atoms.size());
      back.atoms.push_back(chain.atoms[atom]);
    }
  }
  const Expr columns = product->type.shape.back();
  for (std::size_t i = 0; i + 1 < chain.to.size(); ++i) {
    back.to.emplace_back();
    for (const std::size_t atom : chain.to[i]) back.to.back().push_back(number[atom]);
  }
  back.from.emplace_back();
  back.to.emplace_back();
  if (!(columns == Expr(1))) {
    back.from.back().push_back(back.atoms.size());
    back.to.back().push_back(back.atoms.size());
    back.atoms.push_back(columns);
  }
  return rewrite.replace(back.build(rewrite));
}

}  // namespace

bool sink_movement(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {expand_after_elementwise, movement_after_elementwise, movement_after_row, rows_as_stored};
  return apply_rules(graph, kRules);
}

}  // namespace oclc

// Concatenations: of one operand, nested, of adjacent slices of one tensor; and a concatenation that starts with the operands
// of an earlier one reads that one instead. The last keeps DenseNet's feature maps stored once: without it each layer would
// copy all features before it.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

std::size_t axis_of(const Node* node) { return static_cast<std::size_t>(node->get<std::int64_t>("axis")); }

bool drop_empty_and_single(Graph& graph, Node* node) {
  if (!is(node, "concat")) return false;
  const std::size_t axis = axis_of(node);
  std::vector<Value*> pieces;
  for (Value* input : node->inputs) {
    if (!(input->type.shape[axis] == Expr(0))) pieces.push_back(input);
  }
  if (pieces.empty()) pieces.push_back(node->inputs[0]);
  if (pieces.size() == node->inputs.size() && pieces.size() > 1) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.concat(pieces, static_cast<std::int64_t>(axis)));
}

// concat(concat(a, b), c) = concat(a, b, c) where the inner one serves nothing else.
bool flatten_nested(Graph& graph, Node* node) {
  if (!is(node, "concat")) return false;
  const std::size_t axis = axis_of(node);
  std::vector<Value*> pieces;
  for (Value* input : node->inputs) {
    const Node* inner = producer(input, "concat");
    if (inner && axis_of(inner) == axis && has_one_use(graph, input))
      pieces.insert(pieces.end(), inner->inputs.begin(), inner->inputs.end());
    else
      pieces.push_back(input);
  }
  if (pieces.size() == node->inputs.size()) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.concat(pieces, static_cast<std::int64_t>(axis)));
}

// Slices of one tensor of which the second begins where the first ends, along `axis`: the first, made longer.
struct Piece {
  Value* value = nullptr;
  const Node* slice = nullptr;  // null: no slice
  std::vector<Expr> starts, sizes;
  bool joined = false;

  bool join(const Node* next, std::size_t axis) {
    if (!slice || !next || slice->inputs[0] != next->inputs[0] || slice->get<Ints>("steps") != next->get<Ints>("steps"))
      return false;
    std::vector<Expr> next_starts = next->get<std::vector<Expr>>("starts");
    if (!(starts[axis] + sizes[axis] * Expr(slice->get<Ints>("steps")[axis]) == next_starts[axis])) return false;
    next_starts[axis] = starts[axis];
    if (!(next_starts == starts)) return false;
    sizes[axis] += next->get<std::vector<Expr>>("sizes")[axis];
    return joined = true;
  }
};

// concat(x[0:2], x[2:5], y) = concat(x[0:5], y), as many as there are.
bool join_slices(Graph& graph, Node* node) {
  if (!is(node, "concat")) return false;
  const std::size_t axis = axis_of(node);
  std::vector<Piece> pieces;
  for (Value* input : node->inputs) {
    const Node* slice = producer(input, "slice");
    if (!pieces.empty() && pieces.back().join(slice, axis)) continue;
    pieces.push_back({input, slice, {}, {}, false});
    if (!slice) continue;
    pieces.back().starts = slice->get<std::vector<Expr>>("starts");
    pieces.back().sizes = slice->get<std::vector<Expr>>("sizes");
  }
  if (pieces.size() == node->inputs.size()) return false;
  Rewriter rewrite(graph, node);
  std::vector<Value*> values;
  for (const Piece& p : pieces)
    values.push_back(p.joined ? rewrite.slice(p.slice->inputs[0], p.starts, p.sizes, p.slice->get<Ints>("steps")) : p.value);
  return rewrite.replace(rewrite.concat(values, static_cast<std::int64_t>(axis)));
}

bool all_reshaped(const Node* concat) {
  return std::all_of(concat->inputs.begin(), concat->inputs.end(),
                     [](const Value* v) { return producer(v, "reshape") != nullptr; });
}

// transpose(concat(a, b)) = concat(reshape(a), reshape(b)) where the transpose moves the joined axis of size 1 per piece only.
bool transpose_of_stack(Graph& graph, Node* node) {
  if (!is(node, "transpose")) return false;
  const Node* inner = producer(node->inputs[0], "concat");
  if (!inner || !all_reshaped(inner) || !has_one_use(graph, node->inputs[0])) return false;
  const Ints& perm = node->get<Ints>("perm");
  const auto axis = static_cast<std::int64_t>(axis_of(inner));
  const std::int64_t to = std::find(perm.begin(), perm.end(), axis) - perm.begin();
  for (const Value* piece : inner->inputs) {
    Ints data;
    for (const std::int64_t from : perm) {
      if (!(piece->type.shape[static_cast<std::size_t>(from)] == Expr(1))) data.push_back(from);
    }
    if (!std::is_sorted(data.begin(), data.end())) return false;
  }
  Rewriter rewrite(graph, node);
  std::vector<Value*> pieces;
  for (Value* piece : inner->inputs) {
    Shape shape;
    for (const std::int64_t from : perm) shape.push_back(piece->type.shape[static_cast<std::size_t>(from)]);
    pieces.push_back(rewrite.reshape(piece, shape));
  }
  return rewrite.replace(rewrite.concat(std::move(pieces), to));
}

// reshape(concat(a, b)) = concat(reshape(a), reshape(b)) where the reshape joins the concatenated axis with axes behind it.
bool reshape_of_stack(Graph& graph, Node* node) {
  if (!is(node, "reshape")) return false;
  const Node* inner = producer(node->inputs[0], "concat");
  if (!inner || !all_reshaped(inner) || !has_one_use(graph, node->inputs[0])) return false;
  const Shape &from = inner->output()->type.shape, &to = node->output()->type.shape;
  const std::size_t axis = axis_of(inner);
  if (to.size() > from.size() || to.size() <= axis ||
      !std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis), to.begin()))
    return false;
  // to[axis] is the product of from[axis .. axis + joined].
  const std::size_t joined = from.size() - to.size();
  if (!std::equal(from.rbegin(), from.rbegin() + static_cast<std::ptrdiff_t>(to.size() - axis - 1), to.rbegin())) return false;
  Rewriter rewrite(graph, node);
  std::vector<Value*> pieces;
  for (Value* piece : inner->inputs) {
    Shape shape = to;
    shape[axis] = product(std::span(piece->type.shape).subspan(axis, joined + 1));
    pieces.push_back(rewrite.reshape(piece, shape));
  }
  return rewrite.replace(rewrite.concat(std::move(pieces), static_cast<std::int64_t>(axis)));
}

// concat(a, b, c) = concat(concat(a, b), c) where concat(a, b) is at hand, the longest such.
bool share_prefix(Graph& graph, Node* node) {
  if (!is(node, "concat") || node->inputs.size() < 3) return false;
  Node* best = nullptr;
  const auto same_node = [&](const Node* n) { return n == node; };
  for (Node* other : node->inputs[0]->users) {
    if (other == node || !is(other, "concat") || axis_of(other) != axis_of(node) || other->inputs.size() >= node->inputs.size())
      continue;
    if (!std::equal(other->inputs.begin(), other->inputs.end(), node->inputs.begin())) continue;
    if (!(other->output()->layout == node->output()->layout)) continue;
    if (std::all_of(other->output()->users.begin(), other->output()->users.end(), same_node) &&
        !graph.is_output(other->output()))
      continue;
    if (!best || other->inputs.size() > best->inputs.size() ||
        (other->inputs.size() == best->inputs.size() && other->id < best->id))
      best = other;
  }
  if (!best) return false;
  // The prefix must stand in front of the node.
  for (const Node* at : graph.nodes()) {
    if (at == node) return false;
    if (at == best) break;
  }
  Rewriter rewrite(graph, node);
  std::vector<Value*> pieces{best->output()};
  pieces.insert(pieces.end(), node->inputs.begin() + static_cast<std::ptrdiff_t>(best->inputs.size()), node->inputs.end());
  return rewrite.replace(rewrite.concat(pieces, static_cast<std::int64_t>(axis_of(node))));
}

}  // namespace

bool simplify_concat(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {drop_empty_and_single, flatten_nested,   join_slices,
                             transpose_of_stack,    reshape_of_stack, share_prefix};
  return apply_rules(graph, kRules);
}

}  // namespace oclc

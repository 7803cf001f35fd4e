// Movement operators (reshape, transpose, expand, slice, pad) in their simplest form: chains merged, those that do nothing
// dropped, slices moved in front of what they cut, transposes taken into matrix products, expands left to implicit
// broadcasting. Index maps are cheap in kernels only as long as they are few and simple; without this pass, layouts would be
// searched through chains of them.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/movement_chain.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

using Exprs = std::vector<Expr>;

bool drop_identity(Graph& graph, Node* node) {
  if (node->op->kind != OpKind::movement || is(node, "concat")) return false;
  Value* x = node->inputs[0];
  if (!(x->type == node->output()->type)) return false;
  if (is(node, "transpose")) {
    const Ints& perm = node->get<Ints>("perm");
    if (!std::is_sorted(perm.begin(), perm.end())) return false;
  } else if (is(node, "slice")) {
    const Ints& steps = node->get<Ints>("steps");
    const Exprs& starts = node->get<Exprs>("starts");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!(starts[i] == Expr(0)) || (steps[i] != 1 && !(x->type.shape[i] == Expr(1)))) return false;
    }
  } else if (is(node, "pad")) {
    for (const Expr& amount : node->get<Exprs>("before")) {
      if (!(amount == Expr(0))) return false;
    }
  } else if (is(node, "spread")) {
    const Ints &starts = node->get<Ints>("starts"), &strides = node->get<Ints>("strides");
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (starts[i] != 0 || (strides[i] != 1 && !(x->type.shape[i] == Expr(1)))) return false;
    }
  }
  Rewriter rewrite(graph, node);
  return rewrite.replace(x);
}

bool reshape_of_reshape(Graph& graph, Node* node) {
  if (!is(node, "reshape")) return false;
  const Node* inner = producer(node->inputs[0], "reshape");
  Rewriter rewrite(graph, node);
  return inner && rewrite.replace(rewrite.reshape(inner->inputs[0], node->output()->type.shape));
}

bool reshape_of_constant(Graph& graph, Node* node) {
  if (!is(node, "reshape") || !node->output()->type.is_static()) return false;
  const HostTensor* tensor = constant_of(node->inputs[0]);
  if (!tensor) return false;
  Ints shape;
  for (const Expr& dim : node->output()->type.shape) shape.push_back(dim.value());
  Rewriter rewrite(graph, node);
  Value* reshaped = rewrite.constant(tensor->reshaped(std::move(shape)));
  reshaped->name = node->inputs[0]->name;
  return rewrite.replace(reshaped);
}

bool transpose_of_transpose(Graph& graph, Node* node) {
  if (!is(node, "transpose")) return false;
  const Node* inner = producer(node->inputs[0], "transpose");
  if (!inner) return false;
  Ints perm = node->get<Ints>("perm");
  for (std::int64_t& axis : perm) axis = inner->get<Ints>("perm")[static_cast<std::size_t>(axis)];
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.transpose(inner->inputs[0], perm));
}

// A chain of reshapes and transposes that does the same in fewer steps.
bool shorter_chain(Graph& graph, Node* node) {
  if (!is(node, "reshape") && !is(node, "transpose")) return false;
  const MovementChain chain = MovementChain::above(node->output());
  if (chain.length < 2 || chain.cost() >= chain.length) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(chain.build(rewrite));
}

// A reshape of one element, repeated: the element, repeated to the other shape.
bool reshape_of_expanded_element(Graph& graph, Node* node) {
  if (!is(node, "reshape")) return false;
  const Node* inner = producer(node->inputs[0], "expand");
  if (!inner || !(inner->inputs[0]->type.elements() == Expr(1))) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.expand(rewrite.reshape(inner->inputs[0], {}), node->output()->type.shape));
}

// A transpose of what a gather gives per index: a gather at transposed indices.
bool gather_of_transposed_indices(Graph& graph, Node* node) {
  if (!is(node, "transpose")) return false;
  const Node* gather = producer(node->inputs[0], "gather");
  if (!gather || !has_one_use(graph, node->inputs[0]) || gather->get<std::int64_t>("axis") != 0) return false;
  const std::size_t rank = gather->inputs[1]->type.rank();
  const Ints& perm = node->get<Ints>("perm");
  for (std::size_t i = rank; i < perm.size(); ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  }
  Rewriter rewrite(graph, node);
  Value* indices = rewrite.transpose(gather->inputs[1], Ints(perm.begin(), perm.begin() + static_cast<std::ptrdiff_t>(rank)));
  return rewrite.replace(rewrite.call("gather", {gather->inputs[0], indices}, {{"axis", std::int64_t{0}}}));
}

// A transpose that moves axes of size 1 only.
bool transpose_of_units(Graph& graph, Node* node) {
  if (!is(node, "transpose")) return false;
  Ints moved;
  for (const std::int64_t axis : node->get<Ints>("perm")) {
    if (!(node->inputs[0]->type.shape[static_cast<std::size_t>(axis)] == Expr(1))) moved.push_back(axis);
  }
  if (!std::is_sorted(moved.begin(), moved.end())) return false;
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.reshape(node->inputs[0], node->output()->type.shape));
}

// transpose(reshape(x)) = reshape(transpose(x)) where the reshape inserts or drops axes of size 1 only.
bool transpose_before_unit_reshape(Graph& graph, Node* node) {
  if (!is(node, "transpose")) return false;
  const Node* inner = producer(node->inputs[0], "reshape");
  if (!inner) return false;
  const Shape &from = inner->inputs[0]->type.shape, &to = inner->output()->type.shape;
  if (!(without_units(from) == without_units(to))) return false;
  Ints perm, axes;  // of x: its axes of size 1 first; its other axes
  for (std::size_t i = 0; i < from.size(); ++i) (from[i] == Expr(1) ? perm : axes).push_back(static_cast<std::int64_t>(i));
  Ints ordinal(to.size(), -1);
  for (std::size_t i = 0, next = 0; i < to.size(); ++i) {
    if (!(to[i] == Expr(1))) ordinal[i] = static_cast<std::int64_t>(next++);
  }
  for (const std::int64_t axis : node->get<Ints>("perm")) {
    const std::int64_t which = ordinal[static_cast<std::size_t>(axis)];
    if (which >= 0) perm.push_back(axes[static_cast<std::size_t>(which)]);
  }
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.reshape(rewrite.transpose(inner->inputs[0], perm), node->output()->type.shape));
}

bool expand_of_expand(Graph& graph, Node* node) {
  if (!is(node, "expand")) return false;
  const Node* inner = producer(node->inputs[0], "expand");
  Rewriter rewrite(graph, node);
  return inner && rewrite.replace(rewrite.expand(inner->inputs[0], node->output()->type.shape));
}

// Broadcasting operators repeat their operands themselves.
bool broadcast_instead_of_expand(Graph& graph, Node* node) {
  if (node->op->kind != OpKind::elementwise && !is(node, "matmul")) return false;
  bool changed = false;
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    if (const Node* expand = producer(node->inputs[i], "expand")) {
      changed = try_input(graph, node, i, expand->inputs[0]) || changed;
    } else if (const Node* reshape = producer(node->inputs[i], "reshape")) {
      // Axes of size 1 in front.
      const Shape &from = reshape->inputs[0]->type.shape, &to = node->inputs[i]->type.shape;
      if (from.size() >= to.size() || !std::equal(from.rbegin(), from.rend(), to.rbegin())) continue;
      changed = try_input(graph, node, i, reshape->inputs[0]) || changed;
    }
  }
  return changed;
}

struct Cut {
  Exprs starts, sizes;
  Ints steps;
};

Cut cut_of(const Node* slice) { return {slice->get<Exprs>("starts"), slice->get<Exprs>("sizes"), slice->get<Ints>("steps")}; }

bool slice_of_slice(Graph& graph, Node* node) {
  if (!is(node, "slice")) return false;
  const Node* inner = producer(node->inputs[0], "slice");
  if (!inner) return false;
  Cut cut = cut_of(node);
  const Cut base = cut_of(inner);
  for (std::size_t i = 0; i < cut.starts.size(); ++i) {
    cut.starts[i] = base.starts[i] + cut.starts[i] * Expr(base.steps[i]);
    if (__builtin_mul_overflow(cut.steps[i], base.steps[i], &cut.steps[i])) return false;
  }
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.slice(inner->inputs[0], cut.starts, cut.sizes, cut.steps));
}

bool slice_before_transpose(Graph& graph, Node* node) {
  if (!is(node, "slice")) return false;
  const Node* inner = producer(node->inputs[0], "transpose");
  if (!inner) return false;
  const Ints& perm = inner->get<Ints>("perm");
  const Cut cut = cut_of(node);
  Cut moved = cut;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    const auto to = static_cast<std::size_t>(perm[i]);
    moved.starts[to] = cut.starts[i];
    moved.sizes[to] = cut.sizes[i];
    moved.steps[to] = cut.steps[i];
  }
  Rewriter rewrite(graph, node);
  return rewrite.replace(rewrite.transpose(rewrite.slice(inner->inputs[0], moved.starts, moved.sizes, moved.steps), perm));
}

// A slice of whole rows of an axis that a reshape split or kept: cut before the reshape. One axis is cut, in steps of one; the
// axes before it are those of the operand, the product of the axes from it on is the operand's axis times the same rest.
bool slice_before_reshape(Graph& graph, Node* node) {
  if (!is(node, "slice")) return false;
  const Node* inner = producer(node->inputs[0], "reshape");
  if (!inner) return false;
  const Shape &from = inner->inputs[0]->type.shape, &to = inner->output()->type.shape;
  const Cut cut = cut_of(node);
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (cut.starts[i] == Expr(0) && cut.sizes[i] == to[i] && (cut.steps[i] == 1 || to[i] == Expr(1))) continue;
    if (axis || cut.steps[i] != 1) return false;
    axis = i;
  }
  if (!axis) return false;
  const Expr before = product(std::span(to).first(*axis));
  // The operand's axis at which as many elements stand before, and how many elements of the result one of its elements holds.
  Expr passed(1);
  for (std::size_t i = 0; i < from.size(); passed *= from[i], ++i) {
    if (from[i] == Expr(1) || !(passed == before)) continue;
    const Expr inner_to = product(std::span(to).subspan(*axis + 1)), inner_from = product(std::span(from).subspan(i + 1));
    if (inner_from == Expr(0) || !(floor_mod(inner_to, inner_from) == Expr(0))) return false;
    const Expr rows = floor_div(inner_to, inner_from);  // of the operand's axis, per element of the cut axis
    if (!(to[*axis] * rows == from[i])) return false;
    Exprs starts(from.size(), Expr(0)), sizes = from;
    starts[i] = cut.starts[*axis] * rows;
    sizes[i] = cut.sizes[*axis] * rows;
    Rewriter rewrite(graph, node);
    return rewrite.replace(
        rewrite.reshape(rewrite.slice(inner->inputs[0], starts, sizes, Ints(from.size(), 1)), node->output()->type.shape));
  }
  return false;
}

// slice(expand(x)) = expand(slice(x)): along repeated axes only the number of repetitions changes.
bool slice_before_expand(Graph& graph, Node* node) {
  if (!is(node, "slice")) return false;
  const Node* inner = producer(node->inputs[0], "expand");
  if (!inner) return false;
  const Shape &from = inner->inputs[0]->type.shape, &to = inner->output()->type.shape;
  const Cut cut = cut_of(node);
  const std::size_t lead = to.size() - from.size();
  Cut moved{Exprs(from.size(), Expr(0)), Exprs(from.size(), Expr(1)), Ints(from.size(), 1)};
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (cut.sizes[i] == Expr(0)) return false;
    if (i < lead || !(from[i - lead] == to[i])) continue;
    moved.starts[i - lead] = cut.starts[i];
    moved.sizes[i - lead] = cut.sizes[i];
    moved.steps[i - lead] = cut.steps[i];
  }
  Rewriter rewrite(graph, node);
  return rewrite.replace(
      rewrite.expand(rewrite.slice(inner->inputs[0], moved.starts, moved.sizes, moved.steps), node->output()->type.shape));
}

// A slice of a concatenation reads the pieces it touches.
bool slice_of_concat(Graph& graph, Node* node) {
  if (!is(node, "slice")) return false;
  const Node* inner = producer(node->inputs[0], "concat");
  if (!inner) return false;
  const auto axis = static_cast<std::size_t>(inner->get<std::int64_t>("axis"));
  const Cut cut = cut_of(node);
  if (cut.steps[axis] != 1) return false;
  const Expr begin = cut.starts[axis], end = begin + cut.sizes[axis];
  Expr offset(0);
  std::vector<Value*> pieces;
  Rewriter rewrite(graph, node);
  for (Value* piece : inner->inputs) {
    const Expr size = piece->type.shape[axis], next = offset + size;
    if (known_less_equal(next, begin) || known_less_equal(end, offset)) {
      offset = next;
      continue;
    }
    Cut part = cut;
    if (known_less_equal(offset, begin))
      part.starts[axis] = begin - offset;
    else if (known_less_equal(begin, offset))
      part.starts[axis] = Expr(0);
    else
      return rewrite.give_up();
    if (known_less_equal(end, next))
      part.sizes[axis] = end - offset - part.starts[axis];
    else if (known_less_equal(next, end))
      part.sizes[axis] = size - part.starts[axis];
    else
      return rewrite.give_up();
    pieces.push_back(rewrite.slice(piece, part.starts, part.sizes, part.steps));
    offset = next;
  }
  if (pieces.empty() || pieces.size() == inner->inputs.size()) return rewrite.give_up();
  return rewrite.replace(rewrite.concat(pieces, static_cast<std::int64_t>(axis)));
}

// An operand whose innermost stored axis a transpose moved to the second last place is read by the flag instead:
// matmul(a, transpose(b)).
bool transpose_into_matmul(Graph& graph, Node* node) {
  if (!is(node, "matmul")) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    MovementChain chain = MovementChain::above(node->inputs[i]);
    const std::size_t rank = chain.to.size(), steps = chain.cost();
    if (chain.length == 0 || chain.atoms.empty()) continue;
    const auto &second_last = chain.to[rank - 2], &last = chain.to[rank - 1];
    if (second_last.empty() || last.empty() || second_last.back() + 1 != chain.atoms.size()) continue;
    std::swap(chain.to[rank - 2], chain.to[rank - 1]);
    if (chain.cost() > steps) continue;
    Rewriter rewrite(graph, node);
    std::vector<Value*> inputs = node->inputs;
    inputs[i] = chain.build(rewrite);
    Attributes attributes = node->attributes;
    std::int64_t& flag = std::get<std::int64_t>(attributes[i == 0 ? "trans_a" : "trans_b"]);
    flag = 1 - flag;
    return rewrite.replace(rewrite.call("matmul", std::move(inputs), std::move(attributes)));
  }
  return false;
}

// transpose(matmul(a, b)) = matmul(transpose(b), transpose(a)), by the flags: rows of the result are stored as they are
// computed. A constant stays on the right, where it is packed when the plan is made.
bool transposed_product(Graph& graph, Node* node) {
  if (!is(node, "transpose")) return false;
  const Node* inner = producer(node->inputs[0], "matmul");
  if (!inner || !has_one_use(graph, node->inputs[0])) return false;
  Value *a = inner->inputs[0], *b = inner->inputs[1];
  const std::size_t rank = node->output()->type.rank();
  if (a->type.rank() != rank || b->type.rank() != rank || constant_of(a) || constant_of(b)) return false;
  Ints perm = node->get<Ints>("perm");
  std::swap(perm[rank - 2], perm[rank - 1]);
  if (!std::is_sorted(perm.begin(), perm.end())) return false;
  Rewriter rewrite(graph, node);
  Attributes attributes = inner->attributes;
  attributes["trans_a"] = 1 - inner->get<std::int64_t>("trans_b");
  attributes["trans_b"] = 1 - inner->get<std::int64_t>("trans_a");
  return rewrite.replace(rewrite.call("matmul", {b, a}, std::move(attributes)));
}

// Zeros around a convolution's operand are the convolution's own padding.
bool pad_into_conv(Graph& graph, Node* node) {
  if (!is(node, "conv")) return false;
  const Node* pad = producer(node->inputs[0], "pad");
  if (!pad || pad->get<std::string>("mode") != "constant" || pad->get<double>("value") != 0) return false;
  const Exprs &before = pad->get<Exprs>("before"), &after = pad->get<Exprs>("after");
  Ints pads = node->get<Ints>("pads");
  const std::size_t axes = pads.size() / 2;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].is_constant() || !after[i].is_constant()) return false;
    if (i < 2) {
      if (!(before[i] == Expr(0)) || !(after[i] == Expr(0))) return false;
      continue;
    }
    pads[i - 2] += before[i].value();
    pads[i - 2 + axes] += after[i].value();
  }
  Rewriter rewrite(graph, node);
  std::vector<Value*> inputs = node->inputs;
  inputs[0] = pad->inputs[0];
  Attributes attributes = node->attributes;
  attributes["pads"] = pads;
  return rewrite.replace(rewrite.call("conv", std::move(inputs), std::move(attributes)));
}

}  // namespace

bool simplify_movement(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {drop_identity,
                             reshape_of_reshape,
                             reshape_of_constant,
                             reshape_of_expanded_element,
                             transpose_of_transpose,
                             transpose_of_units,
                             transpose_before_unit_reshape,
                             shorter_chain,
                             gather_of_transposed_indices,
                             expand_of_expand,
                             broadcast_instead_of_expand,
                             slice_of_slice,
                             slice_before_transpose,
                             slice_before_reshape,
                             slice_before_expand,
                             slice_of_concat,
                             transpose_into_matmul,
                             transposed_product,
                             pad_into_conv};
  return apply_rules(graph, kRules);
}

}  // namespace oclc

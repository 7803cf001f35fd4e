// Gradients of reductions, softmax and the norms.
#include <algorithm>

#include "compiler/ops/gradients/gradient_rules.h"

namespace oclc {
namespace {

const Ints& axes_of(const Node& node) { return node.get<Ints>("axes"); }

Expr reduced_elements(const Shape& shape, const Ints& axes) {
  Expr count = 1;
  for (const std::int64_t axis : axes) count *= shape[static_cast<std::size_t>(axis)];
  return count;
}

// What `g` is the only element of along the axis, among zeros: where(position == index, value, 0), the gradient of
// gather_elements with one index. Null for other values. A loss over classes is spared a sum of zeros.
Value* picked_value(const Value* g, std::int64_t axis) {
  const auto is = [](const Value* v, std::string_view op) { return v->producer && v->producer->op->name == op; };
  if (!is(g, "where")) return nullptr;
  const std::vector<Value*>& parts = g->producer->inputs;
  const HostTensor* zero = constant_of(parts[2]);
  if (!zero || zero->elements() != 1 || zero->at(0) != 0 || !is(parts[0], "equal")) return nullptr;
  const Value *positions = parts[0]->producer->inputs[0], *index = parts[0]->producer->inputs[1], *value = parts[1];
  if (!is(positions, "iota") || positions->producer->get<std::int64_t>("axis") != axis) return nullptr;
  const auto &start = positions->producer->get<std::vector<Expr>>("start"),
             &step = positions->producer->get<std::vector<Expr>>("step");
  Shape one = g->type.shape;
  one[static_cast<std::size_t>(axis)] = Expr(1);
  const bool good = positions->type.shape == g->type.shape && start[0] == Expr(0) && step[0] == Expr(1) &&
                    index->type.shape == one && value->type.shape == one;
  return good ? parts[1] : nullptr;
}

// The product of the others: where none of them is 0 that of all but the zeros over x, with a zero's own factor left out.
Value* others_product(Builder& b, Value* x, const Ints& axes) {
  const DType dtype = x->type.dtype;
  Value *zero = b.scalar(dtype, 0), *one = b.scalar(dtype, 1);
  Value* is_zero = b.call("equal", {x, zero});
  Value* factors = b.where(is_zero, one, x);
  Value* zeros = b.cast(is_zero, dtype);
  Value* other_zeros = b.sub(b.reduce("reduce_sum", zeros, axes, true), zeros);
  Value* quotient = b.div(b.reduce("reduce_prod", factors, axes, true), factors);
  return b.where(b.call("equal", {other_zeros, zero}), quotient, zero);
}

}  // namespace

std::vector<Value*> reduce_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  Value* x = node.inputs[0];
  const Ints& axes = axes_of(node);
  const DType dtype = x->type.dtype;
  const std::string_view name = node.op->name;
  Shape kept = x->type.shape;
  for (const std::int64_t axis : axes) kept[static_cast<std::size_t>(axis)] = Expr(1);
  const auto keep = [&](Value* v) { return v->type.shape == kept ? v : b.reshape(v, kept); };
  Value* g = keep(gradients[0]);
  if (name == "reduce_mean") {
    const Expr count = reduced_elements(x->type.shape, axes);
    g = count.is_constant() && count.value() != 0 ? b.mul(g, 1 / static_cast<double>(count.value()))
                                                  : b.div(g, count_of(b, count, dtype));
  }
  if (name == "reduce_sum" || name == "reduce_mean") return {g->type.shape == x->type.shape ? g : b.expand(g, x->type.shape)};
  if (name == "reduce_prod") return {b.mul(g, others_product(b, x, axes))};
  // Elements that are equally largest share the gradient.
  Value* wins = b.call("equal", {x, keep(node.output())});
  Value* winners = b.reduce("reduce_sum", b.cast(wins, dtype), axes, true);
  return {b.where(wins, b.div(g, winners), b.scalar(dtype, 0))};
}

// d mean = sum(dx) / n, d variance = 2 sum((x - mean) dx) / n.
std::vector<Value*> moments_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  Value *x = node.inputs[0], *result = nullptr;
  const DType dtype = x->type.dtype;
  const Expr count = reduced_elements(x->type.shape, axes_of(node));
  if (gradients[1]) {
    Value* factor = b.div(b.mul(b.cast(gradients[1], dtype), 2), count_of(b, count, dtype));
    result = b.mul(b.sub(x, b.cast(node.output(0), dtype)), factor);
  }
  if (gradients[0]) {
    Value* each = b.div(b.cast(gradients[0], dtype), count_of(b, count, dtype));
    result = result ? b.add(result, each) : b.expand(each, x->type.shape);
  }
  return {result};
}

std::vector<Value*> softmax_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  Value *g = gradients[0], *y = node.output();
  return {b.mul(y, b.sub(g, b.reduce("reduce_sum", b.mul(g, y), {node.get<std::int64_t>("axis")}, true)))};
}

std::vector<Value*> log_softmax_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  Value* g = gradients[0];
  const std::int64_t axis = node.get<std::int64_t>("axis");
  Value* sum = picked_value(g, axis);
  if (!sum) sum = b.reduce("reduce_sum", g, {axis}, true);
  return {b.sub(g, b.mul(b.exp(node.output()), sum))};
}

// With n the normalised x and h the gradient times scale, over the normalised axes:
//   layer_norm: dx = (h - mean(h) - n mean(h n)) / deviation      rms_norm: the same without mean(h)
// The mean and the deviation are computed again: two numbers a row, cheaper than keeping n.
std::vector<Value*> norm_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return std::vector<Value*>(node.inputs.size(), nullptr);
  Value *x = node.inputs[0], *scale = node.inputs[1], *g = gradients[0];
  const bool centred = node.op->name == "layer_norm";
  const auto first = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
  Ints axes;
  for (std::size_t i = first; i < x->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  const auto mean = [&](Value* v) { return b.reduce("reduce_mean", v, axes, true); };
  Value *from_mean = x, *square = nullptr;
  if (centred) {
    const Node* moments = b.node("moments", {x}, {{"axes", axes}});
    from_mean = b.sub(x, b.cast(moments->output(0), x->type.dtype));
    square = b.cast(moments->output(1), x->type.dtype);
  } else {
    square = mean(b.mul(x, x));
  }
  Value* inverse = b.unary("rsqrt", b.add(square, node.get<double>("epsilon")));
  Value* normal = b.mul(from_mean, inverse);
  Value* h = b.mul(g, scale);
  Value* direction = centred ? b.sub(h, mean(h)) : h;
  Value* dx = b.mul(inverse, b.sub(direction, b.mul(normal, mean(b.mul(h, normal)))));
  std::vector<Value*> result{dx, sum_to(b, b.mul(g, normal), scale->type.shape)};
  if (node.inputs.size() > 2) result.push_back(node.inputs[2] ? sum_to(b, g, scale->type.shape) : nullptr);
  return result;
}

}  // namespace oclc

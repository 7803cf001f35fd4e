// Gradients of matmul, convolution and pooling. Operands are transposed by the operators' flags, never moved.
#include <algorithm>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

bool without_batch(const Value* v) {
  const Shape& shape = v->type.shape;
  return std::all_of(shape.begin(), shape.end() - 2, [](const Expr& e) { return e == Expr(1); });
}

// [.., M, N] as [.. * M, N].
Value* rows_of(Builder& b, Value* v) {
  const Shape& shape = v->type.shape;
  return shape.size() == 2 ? v : b.reshape(v, {product(std::span(shape).first(shape.size() - 1)), shape.back()});
}

Value* shaped(Builder& b, Value* v, const Shape& shape) { return v->type.shape == shape ? v : b.reshape(v, shape); }

std::vector<Expr> spatial_of(const Value* v) { return {v->type.shape.begin() + 2, v->type.shape.end()}; }

Attributes window_attributes(const Node& node, std::initializer_list<const char*> names) {
  Attributes attributes;
  for (const char* name : names) attributes.emplace(name, node.attributes.find(name)->second);
  return attributes;
}

Attributes conv_attributes(const Node& node) { return window_attributes(node, {"strides", "dilations", "pads", "group"}); }

Attributes pool_attributes(const Node& node) {
  Attributes attributes = window_attributes(node, {"kernel", "strides", "dilations", "pads", "ceil_mode"});
  if (node.has("count_include_pad")) attributes.emplace("count_include_pad", node.get<std::int64_t>("count_include_pad"));
  return attributes;
}

// The first positions of a convolution that has more than `like`: where the transposed one left the rest of the data out.
Value* cut_to(Builder& b, Value* v, const Shape& like) {
  if (v->type.shape == like) return v;
  return b.slice(v, std::vector<Expr>(like.size(), Expr(0)), like, Ints(like.size(), 1));
}

Value* conv_data_gradient(Builder& b, const Node& node, Value* y, Value* w, const Value* x) {
  Attributes attributes = conv_attributes(node);
  attributes.emplace("output_shape", spatial_of(x));
  return b.call("conv_transpose", {y, w}, std::move(attributes));
}

Value* conv_weight_gradient(Builder& b, const Node& node, Value* x, Value* y, const Value* w) {
  Attributes attributes = conv_attributes(node);
  Ints kernel;
  for (const Expr& size : spatial_of(w)) kernel.push_back(size.value());
  attributes.emplace("kernel", std::move(kernel));
  return b.call("conv_weight_grad", {x, y}, std::move(attributes));
}

Value* convolved(Builder& b, const Node& node, Value* x, Value* w, const Value* like) {
  return cut_to(b, b.call("conv", {x, w}, conv_attributes(node)), like->type.shape);
}

}  // namespace

// With y = a b: da = g b^T, db = a^T g. A matrix that all of a batch share takes the batch into the summed dimension.
std::vector<Value*> matmul_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr, nullptr};
  Value *left = node.inputs[0], *right = node.inputs[1], *g = gradients[0];
  const bool trans_a = node.get<std::int64_t>("trans_a") != 0, trans_b = node.get<std::int64_t>("trans_b") != 0;
  Value* da = trans_a ? b.matmul(right, g, trans_b, true) : b.matmul(g, right, false, !trans_b);
  da = sum_to(b, da, left->type.shape);
  if (!trans_a && without_batch(right) && g->type.rank() > 2) {
    Value *rows = rows_of(b, left), *row_gradients = rows_of(b, g);
    Value* db = trans_b ? b.matmul(row_gradients, rows, true, false) : b.matmul(rows, row_gradients, true, false);
    return {da, shaped(b, db, right->type.shape)};
  }
  Value* db = trans_b ? b.matmul(g, left, true, trans_a) : b.matmul(left, g, !trans_a, false);
  return {da, sum_to(b, db, right->type.shape)};
}

std::vector<Value*> conv_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  std::vector<Value*> result(node.inputs.size(), nullptr);
  if (!gradients[0]) return result;
  Value *x = node.inputs[0], *w = node.inputs[1], *g = gradients[0];
  result[0] = conv_data_gradient(b, node, g, w, x);
  result[1] = conv_weight_gradient(b, node, x, g, w);
  if (has_input(node, 2)) {
    Ints axes{0};
    for (std::size_t i = 2; i < g->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    result[2] = b.reduce("reduce_sum", g, axes, false);
  }
  return result;
}

// x = conv_transpose(y, w) is linear in both, with conv as transpose.
std::vector<Value*> conv_transpose_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr, nullptr};
  Value *y = node.inputs[0], *w = node.inputs[1], *g = gradients[0];
  return {convolved(b, node, g, w, y), conv_weight_gradient(b, node, g, y, w)};
}

// w = conv_weight_grad(x, y).
std::vector<Value*> conv_weight_grad_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr, nullptr};
  Value *x = node.inputs[0], *y = node.inputs[1], *g = gradients[0];
  return {conv_data_gradient(b, node, y, g, x), convolved(b, node, x, g, y)};
}

// Of equal elements the first of a window has its gradient.
std::vector<Value*> pool_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  Value* x = node.inputs[0];
  Attributes attributes = pool_attributes(node);
  Attributes with_shape = attributes;
  with_shape.emplace("input_shape", spatial_of(x));
  if (node.op->name == "avg_pool") return {b.call("avg_pool_grad", {gradients[0]}, std::move(with_shape))};
  Value* index = b.call("max_pool_index", {x}, std::move(attributes));
  return {b.call("max_pool_grad", {index, gradients[0]}, std::move(with_shape))};
}

// Each window reads the element that its index names.
std::vector<Value*> max_pool_grad_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr, nullptr};
  Value *index = node.inputs[0], *g = gradients[0];
  const Ints &kernel = node.get<Ints>("kernel"), &strides = node.get<Ints>("strides"), &pads = node.get<Ints>("pads"),
             &dilations = node.get<Ints>("dilations");
  const Shape& positions = index->type.shape;
  const DType dtype = index->type.dtype;
  const auto number = [&](std::int64_t n) { return b.scalar(dtype, static_cast<double>(n)); };
  Value *place = nullptr, *rest = index;
  Expr inner = 1;
  for (std::size_t i = kernel.size(); i-- > 0;) {
    Shape along(positions.size(), Expr(1));
    along[i + 2] = positions[i + 2];
    Value* start = b.iota(along, static_cast<std::int64_t>(i) + 2, dtype, -pads[i], strides[i]);
    Value* tap = b.call("mod", {rest, number(kernel[i])});
    rest = b.div(rest, number(kernel[i]));
    Value* at = b.mul(b.add(b.mul(tap, number(dilations[i])), start), count_of(b, inner, dtype));
    place = place ? b.add(place, at) : at;
    inner *= g->type.shape[i + 2];
  }
  const Shape& shape = g->type.shape;
  Value* planes = b.reshape(g, {shape[0], shape[1], product(std::span(shape).subspan(2))});
  Value* places = b.reshape(place, {positions[0], positions[1], product(std::span(positions).subspan(2))});
  return {nullptr, b.reshape(b.gather_elements(planes, places, 2), positions)};
}

std::vector<Value*> avg_pool_grad_gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  return {b.call("avg_pool", {gradients[0]}, pool_attributes(node))};
}

}  // namespace oclc

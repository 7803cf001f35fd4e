// Sums of products beyond those of matrices.
#include <algorithm>

#include "frontends/pt2/axes.h"
#include "frontends/pt2/norms.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

Value* product(AtenContext& c, Value* a, Value* b) { return onnx_call(c, "MatMul", {a, b})[0]; }

Value* sum_along(AtenContext& c, Value* x, std::int64_t axis, bool keepdims = false) {
  return x->type.rank() == 0 ? x : c.b.reduce("reduce_sum", x, {axis}, keepdims);
}

Outputs einsum(AtenContext& c) { return onnx_call(c, "Einsum", c.tensors("tensors"), {{"equation", c.text("equation")}}); }

// The axes in `last` behind the others (or in front), as a matrix.
Value* as_matrix(AtenContext& c, Value* x, Ints inner, bool inner_last) {
  const std::size_t rank = x->type.rank();
  for (std::int64_t& axis : inner) axis = c.axis(axis, rank);
  Ints outer;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(rank); ++axis)
    if (std::find(inner.begin(), inner.end(), axis) == inner.end()) outer.push_back(axis);
  Expr rows = 1, columns = 1;
  for (const std::int64_t axis : outer) rows *= x->type.shape[static_cast<std::size_t>(axis)];
  for (const std::int64_t axis : inner) columns *= x->type.shape[static_cast<std::size_t>(axis)];
  Ints perm = inner_last ? outer : inner;
  const Ints& behind = inner_last ? inner : outer;
  perm.insert(perm.end(), behind.begin(), behind.end());
  return c.b.reshape(reordered(c, x, perm), inner_last ? Shape{rows, columns} : Shape{columns, rows});
}

Value* contracted(AtenContext& c, Value* a, Value* b, const Ints& of_a, const Ints& of_b) {
  return c.b.reshape(c.b.matmul(as_matrix(c, a, of_a, true), as_matrix(c, b, of_b, false)), c.result().shape);
}

Outputs tensordot(AtenContext& c) {
  return {contracted(c, c.tensor("self"), c.tensor("other"), c.integers("dims_self"), c.integers("dims_other"))};
}

Outputs inner(AtenContext& c) {
  Value *a = c.tensor("self"), *b = c.tensor("other");
  if (a->type.rank() == 0 || b->type.rank() == 0) return {c.b.mul(a, b)};
  return {contracted(c, a, b, {-1}, {-1})};
}

Value* outer_of(AtenContext& c, Value* a, Value* b, DType dtype) {
  a = c.b.cast(a, dtype);
  b = c.b.cast(b, dtype);
  return c.b.call(dtype == DType::boolean ? "and" : "mul", {c.b.reshape(a, {a->type.elements(), Expr(1)}), b});
}

Outputs outer(AtenContext& c) { return {outer_of(c, c.tensor("self"), c.tensor("vec2"), c.result().dtype)}; }

// beta * self + alpha * the outer product.
Outputs added_outer(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value* y = outer_of(c, c.tensor("vec1"), c.tensor("vec2"), dtype);
  if (dtype == DType::boolean) return {c.b.call("or", {c.b.expand(c.operand("self", dtype), y->type.shape), y})};
  if (c.has("alpha")) y = c.b.mul(y, c.operand("alpha", dtype));
  const bool scaled = c.has("beta") && c.real("beta") != 1;
  if (scaled && c.real("beta") == 0) return {y};
  Value* self = c.operand("self", dtype);
  return {c.b.add(scaled ? c.b.mul(self, c.operand("beta", dtype)) : self, y)};
}

// [a, b] of blocks: element (i * size of b + j) along each axis is a[i] b[j].
Outputs kronecker(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const std::size_t rank = c.result().rank();
  const auto apart = [&](const char* name, bool first) {
    Value* x = c.operand(name, dtype);
    Shape shape(2 * rank, Expr(1));
    const std::size_t added = rank - x->type.rank();
    for (std::size_t i = 0; i < x->type.rank(); ++i) shape[2 * (added + i) + (first ? 0 : 1)] = x->type.shape[i];
    return c.b.reshape(x, std::move(shape));
  };
  return {c.b.reshape(c.b.mul(apart("self", true), apart("other", false)), c.result().shape)};
}

Outputs chain(AtenContext& c) {
  Value* y = nullptr;
  for (Value* x : c.tensors(c.has("matrices") ? "matrices" : "tensors")) y = y ? product(c, y, x) : x;
  if (!y) c.refuse("matrices to multiply", "none");
  return {y};
}

Outputs vector_product(AtenContext& c) {
  Value* y = c.b.mul(c.tensor("x"), c.tensor("y"));
  return {sum_along(c, y, c.axis(c.integer("dim", -1), y->type.rank()))};
}

// x1[.., I], x2[.., J], weight[O, I, J]: [.., O].
Outputs bilinear(AtenContext& c) {
  Value *x = c.tensor("input1"), *y = c.tensor("input2"), *weight = c.tensor("weight");
  const Shape& w = weight->type.shape;
  const auto rows = [&](Value* v) {
    return c.b.reshape(v, {floor_div(v->type.elements(), v->type.shape.back()), v->type.shape.back()});
  };
  Value* left = c.b.matmul(rows(x), c.b.reshape(c.b.transpose(weight, {1, 0, 2}), {w[1], w[0] * w[2]}));
  const Expr batch = left->type.shape[0];
  Value* right = c.b.reshape(rows(y), {batch, Expr(1), w[2]});
  Value* sum = sum_along(c, c.b.mul(c.b.reshape(left, {batch, w[0], w[2]}), right), 2);
  if (Value* bias = c.optional_tensor("bias")) sum = c.b.add(sum, bias);
  return {c.b.reshape(sum, c.result().shape)};
}

// Of vectors of three along a dimension; the first of that size where none is named.
Outputs cross(AtenContext& c) {
  const Shape& shape = c.result().shape;
  Value *a = c.b.expand(c.tensor("self"), shape), *b = c.b.expand(c.tensor("other"), shape);
  std::int64_t axis = -1;
  if (c.has("dim"))
    axis = c.axis(c.integer("dim"), shape.size());
  else if (c.core() == "last")
    axis = static_cast<std::int64_t>(shape.size()) - 1;
  else
    axis = std::find(shape.begin(), shape.end(), Expr(3)) - shape.begin();
  const auto turned = [&](Value* v, std::int64_t by) {
    return c.b.gather(v, c.b.ints({by % 3, (by + 1) % 3, (by + 2) % 3}), axis);
  };
  return {c.b.sub(c.b.mul(turned(a, 1), turned(b, 2)), c.b.mul(turned(a, 2), turned(b, 1)))};
}

Outputs cosine_similarity(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value *a = c.b.cast(c.tensor("x1"), dtype), *b = c.b.cast(c.tensor("x2"), dtype);
  const std::size_t rank = std::max(a->type.rank(), b->type.rank());
  const std::int64_t axis = c.axis(c.integer("dim", 1), rank) - static_cast<std::int64_t>(rank);
  const auto size = [&](Value* x) {
    Value* root = c.b.norm_root(sum_along(c, c.b.mul(x, x), c.axis(axis, x->type.rank()), true), 2);
    return c.b.div(x, c.b.max(root, c.b.scalar(dtype, c.real("eps", 1e-8))));
  };
  Value* y = c.b.mul(size(a), size(b));
  return {sum_along(c, y, c.axis(axis, y->type.rank()))};
}

Outputs pairwise_distance(AtenContext& c) {
  Value* y = norms(c, c.b.add(c.b.sub(c.tensor("x1"), c.tensor("x2")), c.real("eps", 1e-6)), c.real("p", 2));
  return {c.b.reshape(y, c.result().shape)};
}

Outputs distance(AtenContext& c) {
  Value* apart = c.b.sub(c.tensor("self"), c.tensor("other"));
  return {norms(c, c.b.reshape(apart, {apart->type.elements()}), c.real("p", 2))};
}

constexpr OpRow kProductRows[] = {
    {"aten.einsum.default", einsum},
    {"aten.tensordot.default", tensordot},
    {"aten.inner.default", inner},
    {"aten.outer.default", outer},
    {"aten.addr.default", added_outer},
    {"aten.kron.default", kronecker},
    {"aten.chain_matmul.default", chain},
    {"aten.linalg_multi_dot.default", chain},
    {"aten.linalg_vecdot.default", vector_product},
    {"aten.bilinear.default", bilinear},
    {"aten.cross.default", cross},
    {"aten.linalg_cross.default", cross, "last"},
    {"aten.cosine_similarity.default", cosine_similarity},
    {"aten.pairwise_distance.default", pairwise_distance},
    {"aten.dist.default", distance},
};

}  // namespace

std::span<const OpRow> product_rows() { return kProductRows; }

}  // namespace oclc::pt2

// Tensors out of nothing but sizes and numbers.
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

Value* filled(AtenContext& c, Value* number) { return c.b.expand(number, c.result().shape); }

Outputs full(AtenContext& c) { return {filled(c, c.operand("fill_value", c.result().dtype))}; }
Outputs fill(AtenContext& c) { return {filled(c, c.operand("value", c.result().dtype))}; }
Outputs zeros(AtenContext& c) { return {filled(c, c.b.scalar(c.result().dtype, 0))}; }
Outputs ones(AtenContext& c) { return {filled(c, c.b.scalar(c.result().dtype, 1))}; }
Outputs scalar(AtenContext& c) { return {c.operand("s", c.result().dtype)}; }

// start + i * step, in double for floats as torch counts.
Outputs arange(AtenContext& c) {
  const TensorType& type = c.result();
  const auto integer = [&](const char* name) {
    const Arg* arg = c.find(name);
    return !arg || arg->is(Arg::Kind::integer);
  };
  if (integer("start") && integer("step") && is_integer(type.dtype))
    return {c.b.iota(type.shape, 0, type.dtype, c.size("start", Expr(0)), c.size("step", Expr(1)))};
  Value* i = c.b.cast(c.b.iota(type.shape, 0, DType::i64), type.dtype);
  const auto number = [&](const char* name, double otherwise) {
    return c.has(name) ? c.operand(name, type.dtype) : c.b.scalar(type.dtype, otherwise);
  };
  return {c.b.add(c.b.mul(i, number("step", 1)), number("start", 0))};
}

// prims.iota: start + i * step of `length` elements.
Outputs iota(AtenContext& c) {
  const TensorType& type = c.result();
  return {c.b.iota(type.shape, 0, type.dtype, c.size("start", Expr(0)), c.size("step", Expr(1)))};
}

// From start to end in steps that are equal, counted from the nearer end as torch does.
Value* evenly_spaced(AtenContext& c) {
  const TensorType& type = c.result();
  const DType dtype = is_float(type.dtype) && type.dtype != DType::f64 ? DType::f32 : DType::f64;
  const Expr count = type.shape.at(0);
  Value *start = c.operand("start", dtype), *end = c.operand("end", dtype);
  if (count == Expr(1)) return c.b.expand(start, type.shape);
  Value* steps = c.b.cast(c.b.exprs({count - 1}, {}), dtype);
  Value *step = c.b.div(c.b.sub(end, start), steps), *i = c.b.cast(c.b.iota(type.shape, 0, DType::i64), dtype);
  Value* near = c.b.call("less", {i, c.b.mul(steps, 0.5)});
  Value* behind = c.b.sub(end, c.b.mul(step, c.b.sub(steps, i)));
  return c.b.where(near, c.b.add(start, c.b.mul(step, i)), behind);
}

Outputs linspace(AtenContext& c) { return {c.b.cast(evenly_spaced(c), c.result().dtype)}; }

Outputs logspace(AtenContext& c) {
  Value* exponents = evenly_spaced(c);
  return {c.b.cast(c.b.pow(c.b.scalar(exponents->type.dtype, c.real("base", 10)), exponents), c.result().dtype)};
}

Outputs eye(AtenContext& c) {
  const TensorType& type = c.result();
  Value *row = c.b.iota({type.shape[0], Expr(1)}, 0, DType::i64), *column = c.b.iota({Expr(1), type.shape[1]}, 1, DType::i64);
  return {c.b.cast(c.b.call("equal", {row, column}), type.dtype)};
}

Outputs copy(AtenContext& c) { return {c.b.expand(c.b.cast(c.tensor("src"), c.result().dtype), c.result().shape)}; }

Value* triangle(AtenContext& c, Value* x, bool upper) {
  const std::size_t rank = x->type.rank();
  const Expr rows = x->type.shape[rank - 2], columns = x->type.shape[rank - 1];
  Value* column = c.b.iota({Expr(1), columns}, 1, DType::i64);
  Value* edge = c.b.iota({rows, Expr(1)}, 0, DType::i64, Expr(c.integer("diagonal", 0)));
  Value* kept = c.b.call(upper ? "greater_equal" : "less_equal", {column, edge});
  return c.b.where(kept, x, c.b.scalar(x->type.dtype, 0));
}

Outputs triangular(AtenContext& c) { return {triangle(c, c.tensor("self"), c.core() == "upper")}; }

constexpr OpRow kCreationRows[] = {
    {"aten.full.default", full},
    {"aten.full_like.default", full},
    {"aten.new_full.default", full},
    {"aten.fill.Scalar", fill},
    {"aten.fill.Tensor", fill},
    {"aten.zeros.default", zeros},
    {"aten.zeros_like.default", zeros},
    {"aten.new_zeros.default", zeros},
    {"aten._efficientzerotensor.default", zeros},
    {"aten.ones.default", ones},
    {"aten.ones_like.default", ones},
    {"aten.new_ones.default", ones},
    // What is in them is nobody's business: zeros are as good as anything.
    {"aten.empty.memory_format", zeros},
    {"aten.empty_like.default", zeros},
    {"aten.empty_strided.default", zeros},
    {"aten.new_empty.default", zeros},
    {"aten.new_empty_strided.default", zeros},
    {"aten.scalar_tensor.default", scalar},
    {"aten.arange.default", arange},
    {"aten.arange.start", arange},
    {"aten.arange.start_step", arange},
    {"prims.iota.default", iota},
    {"aten.linspace.default", linspace},
    {"aten.linspace.Tensor_Tensor", linspace},
    {"aten.linspace.Tensor_Scalar", linspace},
    {"aten.linspace.Scalar_Tensor", linspace},
    {"aten.logspace.default", logspace},
    {"aten.logspace.Tensor_Tensor", logspace},
    {"aten.logspace.Tensor_Scalar", logspace},
    {"aten.logspace.Scalar_Tensor", logspace},
    {"aten.eye.default", eye},
    {"aten.eye.m", eye},
    {"aten.zero.default", zeros},
    {"aten.empty_permuted.default", zeros},
    {"aten.copy.default", copy},
    {"aten.tril.default", triangular, "lower"},
    {"aten.triu.default", triangular, "upper"},
};

}  // namespace

std::span<const OpRow> creation_rows() { return kCreationRows; }

}  // namespace oclc::pt2

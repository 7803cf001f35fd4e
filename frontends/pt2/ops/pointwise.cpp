// Elementwise operators: arithmetic, comparisons, logic, functions.
#include <cmath>
#include <limits>
#include <numbers>

#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

Value* is_less(AtenContext& c, Value* x, double value) { return c.b.call("less", {x, number(c, x, value)}); }

// ---- one operand

Value* as_result(AtenContext& c) { return c.b.cast(c.tensor("self"), c.result().dtype); }

Outputs unary(AtenContext& c) { return {c.b.unary(c.core(), as_result(c))}; }

// Truth values are their own signs.
Outputs sign(AtenContext& c) {
  Value* x = as_result(c);
  return {x->type.dtype == DType::boolean ? x : c.b.unary("sign", x)};
}

// Integers stay as they are.
Outputs rounding(AtenContext& c) {
  Value* x = c.tensor("self");
  return {is_float(x->type.dtype) ? c.b.unary(c.core(), x) : x};
}

Value* truncated(AtenContext& c, Value* x) { return c.b.where(is_less(c, x, 0), c.b.unary("ceil", x), c.b.unary("floor", x)); }

Outputs trunc(AtenContext& c) {
  Value* x = c.tensor("self");
  return {is_float(x->type.dtype) ? truncated(c, x) : x};
}

Outputs absolute(AtenContext& c) {
  Value* x = c.tensor("self");
  return {x->type.dtype == DType::boolean ? x : c.b.unary("abs", x)};
}

Outputs scaled_log(AtenContext& c) {
  return {c.b.mul(c.b.unary("log", as_result(c)), c.core() == "log2" ? std::numbers::log2e : std::numbers::log10e)};
}

// Near 0, by atanh, which keeps the digits that 1 + x loses.
Outputs log1p(AtenContext& c) {
  Value* x = as_result(c);
  Value* near = c.b.mul(c.b.unary("atanh", c.b.div(x, c.b.add(x, 2))), 2);
  return {c.b.where(is_less(c, c.b.unary("abs", x), 0.5), near, c.b.unary("log", c.b.add(x, 1)))};
}

// With t = tanh(x / 2), e^x - 1 = 2 t / (1 - t), which keeps its digits near 0.
Outputs expm1(AtenContext& c) {
  Value* x = as_result(c);
  Value* t = c.b.tanh(c.b.mul(x, 0.5));
  Value* near = c.b.div(c.b.mul(t, 2), c.b.sub(number(c, t, 1), t));
  return {c.b.where(is_less(c, c.b.unary("abs", x), 0.5), near, c.b.add(c.b.exp(x), -1))};
}

Outputs exp2(AtenContext& c) {
  Value* x = as_result(c);
  return {c.b.pow(number(c, x, 2), x)};
}

Outputs tests_of_floats(AtenContext& c) {
  Value* x = c.tensor("self");
  if (!is_float(x->type.dtype)) x = c.b.cast(x, DType::f32);
  if (c.core() != "is_finite") return {c.b.unary(c.core(), x)};
  return {c.b.unary("not", c.b.call("or", {c.b.unary("is_nan", x), c.b.unary("is_inf", x)}))};
}

Outputs logical_not(AtenContext& c) { return {c.b.unary("not", c.b.cast(c.tensor("self"), DType::boolean))}; }

Outputs bitwise_not(AtenContext& c) {
  Value* x = c.tensor("self");
  return {c.b.unary(x->type.dtype == DType::boolean ? "not" : "bit_not", x)};
}

Outputs convert(AtenContext& c) {
  return {c.b.cast(c.tensor(c.has("self") ? "self" : "a"), c.dtype().value_or(c.result().dtype))};
}

// ---- two operands

struct Pair {
  Value *a, *b;
};

Pair operands(AtenContext& c, DType dtype) { return {c.operand("self", dtype), c.operand("other", dtype)}; }

Outputs sum(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const bool minus = c.core() == "sub";
  auto [a, b] = operands(c, dtype);
  if (dtype == DType::boolean) return {c.b.call("or", {a, b})};
  if (const Arg* alpha = c.find("alpha"); alpha && !(alpha->is(Arg::Kind::integer) && alpha->integer == Expr(1)))
    b = c.b.mul(b, c.operand("alpha", dtype));
  return {minus ? c.b.sub(a, b) : c.b.add(a, b)};
}

Outputs reversed_difference(AtenContext& c) {
  const auto [a, b] = operands(c, c.result().dtype);
  return {c.b.sub(b, a)};
}

Outputs product(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const auto [a, b] = operands(c, dtype);
  return {c.b.call(dtype == DType::boolean ? "and" : "mul", {a, b})};
}

Outputs extreme(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const auto [a, b] = operands(c, dtype);
  if (dtype == DType::boolean) return {c.b.call(c.core() == "max" ? "or" : "and", {a, b})};
  return {c.b.call(c.core(), {a, b})};
}

Outputs quotient(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const auto [a, b] = operands(c, dtype);
  const std::string mode = c.core() == "floor" ? "floor" : c.text("rounding_mode");
  if (mode.empty()) return {c.b.div(a, b)};
  if (!is_float(dtype)) return {mode == "trunc" ? c.b.div(a, b) : c.b.div(c.b.sub(a, c.b.call("mod", {a, b})), b)};
  Value* q = c.b.div(a, b);
  return {mode == "trunc" ? truncated(c, q) : c.b.unary("floor", q)};
}

Outputs remainder(AtenContext& c) {
  const auto [a, b] = operands(c, c.result().dtype);
  return {c.b.call(c.core(), {a, b})};
}

Outputs compare(AtenContext& c) {
  DType dtype = c.common_dtype({"self", "other"});
  if (dtype == DType::boolean && c.core() != "equal" && c.core() != "not_equal") dtype = DType::u8;
  const auto [a, b] = operands(c, dtype);
  if (c.core() == "not_equal") return {c.b.unary("not", c.b.call("equal", {a, b}))};
  return {c.b.call(c.core(), {a, b})};
}

Outputs logical(AtenContext& c) {
  return {c.b.call(c.core(), {c.b.cast(c.tensor("self"), DType::boolean), c.b.cast(c.tensor("other"), DType::boolean)})};
}

Outputs bitwise(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const auto [a, b] = operands(c, dtype);
  return {c.b.call(dtype == DType::boolean ? c.core() : "bit_" + std::string(c.core()), {a, b})};
}

// Small powers as products, as torch computes them.
Outputs power(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value* x = c.operand("self", dtype);
  const char* name = c.has("exponent") ? "exponent" : "other";
  const Arg* exponent = c.find(name);
  if (exponent && exponent->is_number() && (exponent->is(Arg::Kind::real) || exponent->integer.is_constant()) &&
      is_float(dtype)) {
    const double e = c.real(name);
    if (e == 1) return {x};
    if (e == 2) return {c.b.mul(x, x)};
    if (e == 3) return {c.b.mul(c.b.mul(x, x), x)};
    if (e == 0.5) return {c.b.sqrt(x)};
    if (e == -0.5) return {c.b.unary("rsqrt", x)};
    if (e == -1) return {c.b.unary("reciprocal", x)};
    if (e == -2) return {c.b.unary("reciprocal", c.b.mul(x, x))};
  }
  return {c.b.pow(x, c.operand(name, dtype))};
}

// Of the signs of zeros too: 1 / -0 is below 0.
Value* is_negative(AtenContext& c, Value* x) {
  Value* zero = c.b.call("equal", {x, number(c, x, 0)});
  return c.b.call("or", {is_less(c, x, 0), c.b.call("and", {zero, is_less(c, c.b.unary("reciprocal", x), 0)})});
}

Outputs atan2(AtenContext& c) {
  const auto [y, x] = operands(c, c.result().dtype);
  Value *ay = c.b.unary("abs", y), *ax = c.b.unary("abs", x);
  Value *low = c.b.min(ay, ax), *high = c.b.max(ay, ax);
  Value* equal = c.b.call("equal", {low, high});  // of infinite ones, and of zeros, no quotient is a number
  Value* zero = c.b.call("equal", {high, number(c, x, 0)});
  Value* ratio = c.b.where(zero, number(c, x, 0), c.b.where(equal, number(c, x, 1), c.b.div(low, high)));
  Value* angle = c.b.unary("atan", ratio);
  angle = c.b.where(c.b.call("greater", {ay, ax}), c.b.sub(number(c, x, std::numbers::pi / 2), angle), angle);
  angle = c.b.where(is_negative(c, x), c.b.sub(number(c, x, std::numbers::pi), angle), angle);
  return {c.b.where(is_negative(c, y), c.b.unary("neg", angle), angle)};
}

// ---- three operands

Outputs clamp(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const bool truth = dtype == DType::boolean;
  Value* x = c.operand("self", dtype);
  if (c.has("min")) x = c.b.call(truth ? "or" : "max", {x, c.operand("min", dtype)});
  if (c.has("max")) x = c.b.call(truth ? "and" : "min", {x, c.operand("max", dtype)});
  return {x};
}

Outputs where(AtenContext& c) {
  const DType dtype = c.result().dtype;
  if (c.has("pred")) return {c.b.where(c.tensor("pred"), c.operand("a", dtype), c.operand("b", dtype))};
  return {c.b.where(c.b.cast(c.tensor("condition"), DType::boolean), c.operand("self", dtype), c.operand("other", dtype))};
}

Outputs masked_fill(AtenContext& c) {
  const DType dtype = c.result().dtype;
  return {c.b.where(c.tensor("mask"), c.operand("value", dtype), c.operand("self", dtype))};
}

// self + value * tensor1 op tensor2
Outputs fused_sum(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value* term = c.b.call(c.core(), {c.operand("tensor1", dtype), c.operand("tensor2", dtype)});
  if (c.has("value")) term = c.b.mul(term, c.operand("value", dtype));
  return {c.b.add(c.operand("self", dtype), term)};
}

Outputs product_and_sum(AtenContext& c) {
  const DType dtype = c.result().dtype;
  return {c.b.fma(c.operand("a", dtype), c.operand("b", dtype), c.operand("c", dtype))};
}

Outputs lerp(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value* x = c.operand("self", dtype);
  return {c.b.add(x, c.b.mul(c.operand("weight", dtype), c.b.sub(c.operand("end", dtype), x)))};
}

constexpr OpRow kPointwiseRows[] = {
    {"aten.neg.default", unary, "neg"},
    {"aten._neg_view.default", unary, "neg"},
    {"aten.exp.default", unary, "exp"},
    {"aten.log.default", unary, "log"},
    {"aten.sqrt.default", unary, "sqrt"},
    {"aten.rsqrt.default", unary, "rsqrt"},
    {"aten.reciprocal.default", unary, "reciprocal"},
    {"aten.sin.default", unary, "sin"},
    {"aten.cos.default", unary, "cos"},
    {"aten.tan.default", unary, "tan"},
    {"aten.asin.default", unary, "asin"},
    {"aten.acos.default", unary, "acos"},
    {"aten.atan.default", unary, "atan"},
    {"aten.sinh.default", unary, "sinh"},
    {"aten.cosh.default", unary, "cosh"},
    {"aten.asinh.default", unary, "asinh"},
    {"aten.acosh.default", unary, "acosh"},
    {"aten.atanh.default", unary, "atanh"},
    {"aten.tanh.default", unary, "tanh"},
    {"aten.sigmoid.default", unary, "sigmoid"},
    {"aten.erf.default", unary, "erf"},
    {"aten.erfc.default", unary, "erfc"},
    {"aten.lgamma.default", unary, "lgamma"},
    {"aten.relu.default", unary, "relu"},
    {"aten.sign.default", sign},
    {"aten.floor.default", rounding, "floor"},
    {"aten.ceil.default", rounding, "ceil"},
    {"aten.round.default", rounding, "round"},
    {"aten.trunc.default", trunc},
    {"aten.abs.default", absolute},
    {"aten.log2.default", scaled_log, "log2"},
    {"aten.log10.default", scaled_log, "log10"},
    {"aten.log1p.default", log1p},
    {"aten.expm1.default", expm1},
    {"aten.exp2.default", exp2},
    {"aten.isnan.default", tests_of_floats, "is_nan"},
    {"aten.isinf.default", tests_of_floats, "is_inf"},
    {"aten.isfinite.default", tests_of_floats, "is_finite"},
    {"aten.logical_not.default", logical_not},
    {"aten.bitwise_not.default", bitwise_not},
    {"aten._to_copy.default", convert},
    {"aten.to.dtype", convert},
    {"aten.to.dtype_layout", convert},
    {"prims.convert_element_type.default", convert},
    {"aten.add.Tensor", sum, "add"},
    {"aten.add.Scalar", sum, "add"},
    {"aten.sub.Tensor", sum, "sub"},
    {"aten.sub.Scalar", sum, "sub"},
    {"aten.rsub.Scalar", reversed_difference},
    {"aten.rsub.Tensor", reversed_difference},
    {"aten.mul.Tensor", product},
    {"aten.mul.Scalar", product},
    {"aten.div.Tensor", quotient},
    {"aten.div.Scalar", quotient},
    {"aten.div.Tensor_mode", quotient},
    {"aten.div.Scalar_mode", quotient},
    {"aten.floor_divide.default", quotient, "floor"},
    {"aten.maximum.default", extreme, "max"},
    {"aten.minimum.default", extreme, "min"},
    {"aten.remainder.Tensor", remainder, "mod"},
    {"aten.remainder.Scalar", remainder, "mod"},
    {"aten.fmod.Tensor", remainder, "fmod"},
    {"aten.fmod.Scalar", remainder, "fmod"},
    {"aten.atan2.default", atan2},
    {"aten.pow.Tensor_Scalar", power},
    {"aten.pow.Tensor_Tensor", power},
    {"aten.pow.Scalar", power},
    {"prims.pow.default", power},
    {"aten.eq.Tensor", compare, "equal"},
    {"aten.eq.Scalar", compare, "equal"},
    {"aten.ne.Tensor", compare, "not_equal"},
    {"aten.ne.Scalar", compare, "not_equal"},
    {"aten.lt.Tensor", compare, "less"},
    {"aten.lt.Scalar", compare, "less"},
    {"aten.le.Tensor", compare, "less_equal"},
    {"aten.le.Scalar", compare, "less_equal"},
    {"aten.gt.Tensor", compare, "greater"},
    {"aten.gt.Scalar", compare, "greater"},
    {"aten.ge.Tensor", compare, "greater_equal"},
    {"aten.ge.Scalar", compare, "greater_equal"},
    {"aten.logical_and.default", logical, "and"},
    {"aten.logical_or.default", logical, "or"},
    {"aten.logical_xor.default", logical, "xor"},
    {"aten.bitwise_and.Tensor", bitwise, "and"},
    {"aten.bitwise_and.Scalar", bitwise, "and"},
    {"aten.bitwise_or.Tensor", bitwise, "or"},
    {"aten.bitwise_or.Scalar", bitwise, "or"},
    {"aten.bitwise_xor.Tensor", bitwise, "xor"},
    {"aten.bitwise_xor.Scalar", bitwise, "xor"},
    {"aten.__and__.Tensor", bitwise, "and"},
    {"aten.__or__.Tensor", bitwise, "or"},
    {"aten.clamp.default", clamp},
    {"aten.clamp.Tensor", clamp},
    {"aten.clamp_min.default", clamp},
    {"aten.clamp_max.default", clamp},
    {"aten.where.self", where},
    {"prims.where.default", where},
    {"aten.where.ScalarSelf", where},
    {"aten.where.ScalarOther", where},
    {"aten.where.Scalar", where},
    {"aten.masked_fill.Scalar", masked_fill},
    {"aten.masked_fill.Tensor", masked_fill},
    {"aten.addcmul.default", fused_sum, "mul"},
    {"aten.addcdiv.default", fused_sum, "div"},
    {"prims.fma.default", product_and_sum},
    {"aten.lerp.Scalar", lerp},
    {"aten.lerp.Tensor", lerp},
};

}  // namespace

std::span<const OpRow> pointwise_rows() { return kPointwiseRows; }

}  // namespace oclc::pt2

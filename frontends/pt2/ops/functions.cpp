// Functions of elements that torch makes of simpler ones.
#include <cmath>
#include <limits>
#include <numbers>

#include "compiler/ops/gradients/gradient_rules.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// The argument in the type of the result, 16 bits widened.
Term argument(AtenContext& c, std::string_view name = "self") { return {&c.b, c.widened(c.operand(name, c.result().dtype))}; }

Outputs as_result(AtenContext& c, Term y) { return {c.b.cast(y.value, c.result().dtype)}; }

Term equal(Term x, double value) { return x.binary("equal", x.number(value)); }

// log(e^a + e^b) = max(a, b) + log(1 + e^-|a - b|), of base e or 2. Of equal ones, which may be infinite, a + log 2.
Outputs log_of_sum(AtenContext& c) {
  const Term a = argument(c), b = argument(c, "other");
  const double unit = c.core() == "2" ? std::numbers::ln2 : 1;
  const Term apart = (-unit) * (a - b).unary("abs");
  const Term sum = a.binary("max", b) + (1 / unit) * apart.unary("softplus");
  return as_result(c, select(a.binary("equal", b), std::numbers::ln2 / unit + a, sum));
}

// 0 where x is, but for y that is no number.
Outputs x_log_y(AtenContext& c) {
  const Term x = argument(c), y = argument(c, "other");
  const Term product = select(equal(x, 0), x.number(0), x * y.unary("log"));
  return as_result(c, select(y.unary("is_nan"), y.number(kNan), product));
}

Outputs sinc(AtenContext& c) {
  const Term x = argument(c), zero = equal(x, 0), angle = std::numbers::pi * select(zero, x.number(1), x);
  return as_result(c, select(zero, x.number(1), angle.unary("sin") / angle));
}

Outputs logit(AtenContext& c) {
  Term x = argument(c);
  if (c.has("eps")) x = x.binary("max", x.number(c.real("eps"))).binary("min", x.number(1 - c.real("eps")));
  return as_result(c, (x / (1 - x)).unary("log"));
}

Outputs fraction(AtenContext& c) {
  const Term x = argument(c);
  return as_result(c, x - select(x.binary("less", x.number(0)), x.unary("ceil"), x.unary("floor")));
}

Outputs heaviside(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value *x = c.operand("self", dtype), *zero = c.b.scalar(dtype, 0);
  if (dtype == DType::boolean) return {c.b.where(x, x, c.operand("values", dtype))};
  Value* above = c.b.cast(c.b.call("greater", {x, zero}), dtype);
  return {c.b.where(c.b.call("equal", {x, zero}), c.operand("values", dtype), above)};
}

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.FEp127;
    default:
      return std::numeric_limits<float>::max();
  }
}

Outputs nan_to_number(AtenContext& c) {
  Value* x = c.tensor("self");
  const DType dtype = x->type.dtype;
  if (!is_float(dtype)) return {x};
  const auto number = [&](double value) { return c.b.scalar(dtype, value); };
  const auto is = [&](double value) { return c.b.call("equal", {x, number(value)}); };
  Value* y = c.b.where(c.b.unary("is_nan", x), number(c.real("nan", 0)), x);
  y = c.b.where(is(kInfinity), number(c.real("posinf", largest_of(dtype))), y);
  return {c.b.where(is(-kInfinity), number(c.real("neginf", -largest_of(dtype))), y)};
}

Outputs is_close(AtenContext& c) {
  DType dtype = c.common_dtype({"self", "other"});
  if (!is_float(dtype)) dtype = DType::f32;
  const auto real = [&](std::string_view name) { return Term{&c.b, c.widened(c.operand(name, dtype))}; };
  const Term a = real("self"), b = real("other"), size = (a - b).unary("abs");
  const Term allowed = c.real("atol", 1e-8) + (c.real("rtol", 1e-5) * b).unary("abs");
  const Term finite = size.binary("less", size.number(kInfinity));
  Term close = a.binary("equal", b).binary("or", finite.binary("and", size.binary("less_equal", allowed)));
  if (c.flag("equal_nan")) close = close.binary("or", a.unary("is_nan").binary("and", b.unary("is_nan")));
  return {close.value};
}

// Of integers no value is infinite.
Outputs is_infinite(AtenContext& c) {
  Value* x = c.tensor("self");
  if (!is_float(x->type.dtype)) return {c.b.expand(c.b.scalar(DType::boolean, 0), x->type.shape)};
  return {c.b.call("equal", {x, c.b.scalar(x->type.dtype, c.core() == "above" ? kInfinity : -kInfinity)})};
}

Outputs is_real(AtenContext& c) { return {c.b.expand(c.b.scalar(DType::boolean, 1), c.result().shape)}; }

Outputs in_degrees(AtenContext& c) { return as_result(c, (180 / std::numbers::pi) * argument(c)); }
Outputs in_radians(AtenContext& c) { return as_result(c, (std::numbers::pi / 180) * argument(c)); }

Outputs square(AtenContext& c) {
  Value* x = c.operand("self", c.result().dtype);
  return {c.b.mul(x, x)};
}

Outputs times_power_of_two(AtenContext& c) {
  const Term x = argument(c), exponent = argument(c, "other");
  return as_result(c, x * exponent.number(2).binary("pow", exponent));
}

Outputs normal_distribution(AtenContext& c) {
  return as_result(c, 0.5 * ((-1 / std::numbers::sqrt2) * argument(c)).unary("erfc"));
}

// ---- activations

// a sigmoid(b) of the halves along a dimension.
Outputs gated(AtenContext& c) {
  Value* x = c.tensor("self");
  const std::int64_t axis = c.axis(c.integer("dim", -1), x->type.rank());
  const Expr half = c.result().shape[static_cast<std::size_t>(axis)];
  return {c.b.mul(c.b.slice_axis(x, axis, Expr(0), half), c.b.sigmoid(c.b.slice_axis(x, axis, half, half)))};
}

// Numbers of a size up to lambda are 0; others stay, or lose lambda.
Outputs shrunk(AtenContext& c) {
  const Term x = argument(c), zero = x.number(0);
  const double lambda = c.real("lambd", 0.5);
  const Term above = x.binary("greater", x.number(lambda)), below = x.binary("less", x.number(-lambda));
  const bool hard = c.core() == "hard";
  return as_result(c, select(above, hard ? x : x - lambda, select(below, hard ? x : lambda + x, zero)));
}

Outputs random_leaky_relu(AtenContext& c) {
  if (c.flag("training")) c.refuse("rrelu in eval mode", "rrelu that draws", "call model.eval() before exporting");
  Value* x = c.tensor("self");
  const double slope = (c.real("lower", 0.125) + c.real("upper", 1.0 / 3)) / 2;
  return {c.b.where(c.b.call("greater_equal", {x, c.b.scalar(x->type.dtype, 0)}), x, c.b.mul(x, slope))};
}

constexpr OpRow kFunctionRows[] = {
    {"aten.logaddexp.default", log_of_sum},
    {"aten.logaddexp2.default", log_of_sum, "2"},
    {"aten.xlogy.Tensor", x_log_y},
    {"aten.xlogy.Scalar_Self", x_log_y},
    {"aten.xlogy.Scalar_Other", x_log_y},
    {"aten.sinc.default", sinc},
    {"aten.logit.default", logit},
    {"aten.frac.default", fraction},
    {"aten.heaviside.default", heaviside},
    {"aten.nan_to_num.default", nan_to_number},
    {"aten.isclose.default", is_close},
    {"aten.isposinf.default", is_infinite, "above"},
    {"aten.isneginf.default", is_infinite, "below"},
    {"aten.isreal.default", is_real},
    {"aten.rad2deg.default", in_degrees},
    {"aten.deg2rad.default", in_radians},
    {"aten.square.default", square},
    {"aten.ldexp.Tensor", times_power_of_two},
    {"aten.special_ndtr.default", normal_distribution},
    {"aten.glu.default", gated},
    {"aten.hardshrink.default", shrunk, "hard"},
    {"aten.softshrink.default", shrunk, "soft"},
    {"aten.rrelu.default", random_leaky_relu},
};

}  // namespace

std::span<const OpRow> function_rows() { return kFunctionRows; }

}  // namespace oclc::pt2

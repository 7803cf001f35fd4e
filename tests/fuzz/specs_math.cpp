// Arithmetic, comparisons, logic, casts.
#include <algorithm>

#include "tests/fuzz/specs.h"

namespace oclc::fuzz {
namespace {

struct Domain {
  std::string_view op;
  double low, high;
};

// Where functions have no poles and slopes are moderate.
constexpr Domain kDomains[] = {{"Acos", -0.9, 0.9}, {"Acosh", 1.1, 9}, {"Asin", -0.9, 0.9}, {"Atanh", -0.9, 0.9},
                               {"Cosh", -3, 3},     {"Exp", -4, 3},    {"Log", 0.1, 9},     {"Reciprocal", 0.25, 8},
                               {"Sinh", -3, 3},     {"Sqrt", 0.1, 30}, {"Tan", -1.2, 1.2},  {"Sin", -9, 9},
                               {"Cos", -9, 9}};

Range domain_of(std::string_view op) {
  for (const Domain& d : kDomains) {
    if (d.op == op) return {d.low, d.high, true, false};
  }
  return {-4, 4, false, true};
}

void smooth(Draft& d) { d.input(d.floats(), d.shape(), domain_of(d.node.op_type())); }

void stepped(Draft& d) {
  d.effect = Effect::decides;
  d.input(d.floats(), d.shape(), {-4, 4, false, d.node.op_type() != "Sign"});
}

void signed_numbers(Draft& d) {
  d.effect = Effect::moves;
  d.input(d.r.chance(0.6) ? d.floats() : d.type({DType::i8, DType::i16, DType::i32, DType::i64}), d.shape());
}

void sign(Draft& d) {
  d.effect = Effect::decides;
  d.input(d.numbers(), d.shape());
}

void logical_not(Draft& d) {
  d.effect = Effect::decides;
  d.input(DType::boolean, d.shape());
}

void two(Draft& d, DType dtype, const Range& a = {}, const Range& b = {}) {
  const Dims shape = d.shape();
  if (d.r.chance(0.5)) {
    d.input(dtype, shape, a);
    d.input(dtype, d.broadcast(shape), b);
  } else {
    d.input(dtype, d.broadcast(shape), a);
    d.input(dtype, shape, b);
  }
}

void sum(Draft& d) {
  d.effect = Effect::ring;
  two(d, d.numbers());
}

void divide(Draft& d) {
  const DType dtype = d.numbers();
  d.effect = is_float(dtype) ? Effect::smooth : Effect::decides;
  two(d, dtype, {-20, 20}, {is_float(dtype) ? 0.5 : 1, 5, true});
}

void compare(Draft& d) {
  d.effect = Effect::decides;
  two(d, d.node.op_type() == "Equal" && d.r.chance(0.2) ? DType::boolean : d.numbers(), {-3, 3, false, true}, {-3, 3});
}

void logic(Draft& d) {
  d.effect = Effect::decides;
  two(d, DType::boolean);
}

void bits(Draft& d) {
  d.effect = Effect::decides;
  const DType dtype = d.type({DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16, DType::u32, DType::u64});
  if (d.node.op_type() == "BitwiseNot")
    d.input(dtype, d.shape(), {-100, 100});
  else
    two(d, dtype, {-100, 100}, {-100, 100});
}

void shift(Draft& d) {
  d.effect = Effect::decides;
  d.set("direction", d.r.pick({"LEFT", "RIGHT"}));
  two(d, d.type({DType::u8, DType::u16, DType::u32, DType::u64}), {0, 100}, {0, 7, true});
}

void power(Draft& d) {
  const DType base = d.r.chance(0.8) ? d.floats() : d.type({DType::i32, DType::i64});
  const bool whole = !is_float(base);
  d.effect = whole ? Effect::decides : Effect::smooth;
  d.tolerance = 8;
  const DType exponent = d.opset < 12 || d.r.chance(0.7) ? base
                         : whole                         ? d.type({DType::i32, DType::i64})
                                                         : d.type({DType::f32, DType::i32, DType::i64});
  const Dims shape = d.shape();
  d.input(base, shape, {whole ? -4.0 : 0.3, 3, true});
  d.input(exponent, d.broadcast(shape), {is_float(exponent) && !whole ? -2.0 : 0, 3, true});
}

void modulo(Draft& d) {
  d.effect = Effect::decides;
  const bool like_c = d.r.chance(0.5);
  const DType dtype =
      like_c ? d.numbers()
             : d.type({DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16, DType::u32, DType::u64});
  if (like_c) d.set("fmod", 1);
  const double side = is_signed(dtype) && d.r.chance(0.4) ? -1 : 1;
  two(d, dtype, {-20, 20}, {side < 0 ? -5.0 : 1, side < 0 ? -1.0 : 5, true});
}

void many(Draft& d) {
  const std::string& op = d.node.op_type();
  d.effect = op == "Max" || op == "Min" ? Effect::moves : op == "Mean" ? Effect::smooth : Effect::ring;
  const DType dtype = op == "Max" || op == "Min" ? d.numbers() : d.floats();
  const Dims shape = d.shape();
  const std::int64_t count = d.r.integer(1, 4);
  for (std::int64_t i = 0; i < count; ++i) d.input(dtype, i == 0 || d.opset < 8 ? shape : d.broadcast(shape));
}

void where(Draft& d) {
  d.effect = Effect::moves;
  const DType dtype = d.any();
  const Dims shape = d.shape();
  const std::int64_t whole = d.r.integer(0, 2);
  d.input(DType::boolean, whole == 0 ? shape : d.broadcast(shape));
  d.input(dtype, whole == 1 ? shape : d.broadcast(shape));
  d.input(dtype, whole == 2 ? shape : d.broadcast(shape));
}

void is_infinite(Draft& d) {
  d.effect = Effect::decides;
  d.input(d.opset >= 20 ? d.floats() : d.type({DType::f32, DType::f64}), d.shape(), {-2, 2, false, true});
  if (d.node.op_type() != "IsInf") return;
  if (d.r.chance(0.4)) d.set("detect_negative", d.r.chance(0.5));
  if (d.r.chance(0.4)) d.set("detect_positive", d.r.chance(0.5));
}

void cast(Draft& d) {
  d.effect = Effect::decides;
  const DType from = d.stored();
  const DType to = d.opset >= 23 && d.r.chance(0.3)
                       ? d.r.pick({DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1,
                                   DType::i4, DType::u4})
                       : d.r.pick({DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i16, DType::i32,
                                   DType::i64, DType::u8, DType::u16, DType::u32, DType::u64, DType::boolean});
  // What is out of the type's range is left open.
  const bool negative = is_signed(to) || is_integer(from);
  // Out of the range of 4 bits integers alone keep what ONNX says.
  const double most = (to == DType::i4 || to == DType::u4) && !is_integer(from) ? 7 : 100;
  d.input(from, d.shape(), {negative ? -most : 0.0, most, true});
  if (d.node.op_type() == "Cast")
    d.set("to", onnx_type(to));
  else
    d.input(to, {2});
}

void clip(Draft& d) {
  d.effect = Effect::moves;
  const DType dtype = d.opset >= 12 ? d.numbers() : d.floats();
  d.input(dtype, d.shape(), {-4, 4, false, false});
  const bool low = d.r.chance(0.7), high = d.r.chance(0.7);
  if (d.opset < 11) {
    if (low) d.set("min", d.r.real(-2, 0));
    if (high) d.set("max", d.r.real(0, 2));
    return;
  }
  low ? (void)d.input(dtype, {}, {-2, 0, true}) : d.none();
  high ? (void)d.input(dtype, {}, {0, 2, true}) : d.none();
}

constexpr Spec kMathSpecs[] = {
    {"Abs", 6, 23, signed_numbers},
    {"Neg", 6, 23, signed_numbers},
    {"Acos", 7, 23, smooth},
    {"Acosh", 9, 23, smooth},
    {"Asin", 7, 23, smooth},
    {"Asinh", 9, 23, smooth},
    {"Atan", 7, 23, smooth},
    {"Atanh", 9, 23, smooth},
    {"Cos", 7, 23, smooth},
    {"Cosh", 9, 23, smooth},
    {"Erf", 9, 23, smooth},
    {"Exp", 6, 23, smooth},
    {"Log", 6, 23, smooth},
    {"Reciprocal", 6, 23, smooth},
    {"Sin", 7, 23, smooth},
    {"Sinh", 9, 23, smooth},
    {"Sqrt", 6, 23, smooth},
    {"Tan", 7, 23, smooth},
    {"Ceil", 6, 23, stepped},
    {"Floor", 6, 23, stepped},
    {"Round", 11, 23, stepped},
    {"Sign", 9, 23, sign},
    {"Not", 1, 23, logical_not},
    {"IsNaN", 9, 23, is_infinite},
    {"IsInf", 10, 23, is_infinite},
    {"Add", 7, 23, sum},
    {"Sub", 7, 23, sum},
    {"Mul", 7, 23, sum},
    {"Div", 7, 23, divide},
    {"Equal", 11, 23, compare},
    {"Greater", 9, 23, compare},
    {"Less", 9, 23, compare},
    {"GreaterOrEqual", 12, 23, compare},
    {"LessOrEqual", 12, 23, compare},
    {"And", 7, 23, logic},
    {"Or", 7, 23, logic},
    {"Xor", 7, 23, logic},
    {"BitwiseAnd", 18, 23, bits},
    {"BitwiseOr", 18, 23, bits},
    {"BitwiseXor", 18, 23, bits},
    {"BitwiseNot", 18, 23, bits},
    {"BitShift", 11, 23, shift},
    {"Pow", 7, 23, power},
    {"Mod", 10, 23, modulo},
    {"Max", 8, 23, many},
    {"Min", 8, 23, many},
    {"Sum", 6, 23, many},
    {"Mean", 6, 23, many},
    {"Where", 9, 23, where},
    {"Cast", 6, 23, cast},
    {"CastLike", 15, 23, cast},
    {"Clip", 6, 23, clip},
};

}  // namespace

std::span<const Spec> math_specs() { return kMathSpecs; }

}  // namespace oclc::fuzz

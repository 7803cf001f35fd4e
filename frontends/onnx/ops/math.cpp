// Arithmetic, comparisons, logic, casts.
#include <fmt/format.h>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Outputs unary(OpContext& c) { return {c.b.unary(c.core(), c.input(0))}; }

Outputs binary(OpContext& c) { return {c.b.call(c.core(), {c.input(0), c.input(1)})}; }

// Folds any number of inputs.
Outputs variadic(OpContext& c) {
  Value* result = c.input(0);
  for (std::size_t i = 1; i < c.inputs(); ++i) result = c.b.call(c.core(), {result, c.input(i)});
  return {result};
}

Outputs mean(OpContext& c) {
  Value* sum = variadic(c)[0];
  return {c.b.div(sum, c.b.scalar(sum->type.dtype, static_cast<double>(c.inputs())))};
}

Outputs power(OpContext& c) {
  Value *base = c.input(0), *exponent = c.input(1);
  const DType result = base->type.dtype;
  if (is_float(exponent->type.dtype) && !is_float(result)) {
    const DType wide = exponent->type.dtype;
    return {c.b.cast(c.b.pow(c.b.cast(base, wide), exponent), result)};
  }
  return {c.b.pow(base, c.b.cast(exponent, result))};
}

Outputs modulo(OpContext& c) {
  const bool c_like = c.flag("fmod");
  if (!c_like && c.opset() < 28 && is_float(c.input(0)->type.dtype)) c.fail("fmod=1 for floating-point numbers", "fmod=0");
  return {c.b.call(c_like ? "fmod" : "mod", {c.input(0), c.input(1)})};
}

Outputs is_infinite(OpContext& c) {
  Value* x = c.input(0);
  const bool positive = c.flag("detect_positive", true), negative = c.flag("detect_negative", true);
  Value* infinite = c.b.unary("is_inf", x);
  if (positive && negative) return {infinite};
  Value* zero = c.b.scalar(x->type.dtype, 0);
  if (!positive && !negative) return {c.b.call("and", {infinite, c.b.call("equal", {x, zero})})};
  return {c.b.call("and", {infinite, c.b.call(positive ? "greater" : "less", {x, zero})})};
}

Outputs where(OpContext& c) { return {c.b.where(c.input(0), c.input(1), c.input(2))}; }

// Before opset 19 ONNX does not say how a number becomes a bfloat16, and its test data cut the lower bits off; since then the
// nearest is taken. What rounding made larger is brought one step back.
Value* cut_off(OpContext& c, Value* x) {
  constexpr double kLargest = 3.38953138925153547590470800371487866880e38;  // of bfloat16
  x = c.b.cast(x, DType::f32);
  Value* near = c.b.cast(x, DType::bf16);
  Value* wide = c.b.cast(near, DType::f32);
  Value* smaller =
      c.b.max(c.b.min(c.b.mul(wide, 1 - 0x1p-8), c.b.scalar(DType::f32, kLargest)), c.b.scalar(DType::f32, -kLargest));
  Value* larger = c.b.call("greater", {c.b.unary("abs", wide), c.b.unary("abs", x)});
  return c.b.where(larger, c.b.cast(smaller, DType::bf16), near);
}

// The exponent of x as f8e8m0. Floats of single precision hold it in eight of their bits, with the same bias.
Value* as_power_of_two(OpContext& c, Value* x, bool saturates, const std::string& round_mode) {
  if (round_mode != "up" && round_mode != "down" && round_mode != "nearest")
    c.fail("round_mode up, down or nearest", printable(round_mode));
  constexpr double kInfinity = 0x7f800000, kFraction = 0x7fffff, kLargest = 254, kNaN = 255;
  const auto number = [&](double v) { return c.b.scalar(DType::u32, v); };
  const auto is = [&](const char* op, Value* a, double v) { return c.b.call(op, {a, number(v)}); };
  x = x->type.dtype == DType::f32 ? x : c.b.cast(x, DType::f32);
  Value* size = is("bit_and", c.b.call("bitcast", {x}, {{"dtype", DType::u32}}), 0x7fffffff);
  Value *exponent = is("shift_right", size, 23), *fraction = is("bit_and", size, kFraction);
  // Below the normal numbers there is one power more, in the middle between none and the next.
  const double half = 0x400000, low = 0x600000;
  Value* least = round_mode == "up"        ? c.b.where(is("equal", exponent, 0), number(half + 1), number(1))
                 : round_mode == "nearest" ? c.b.where(is("equal", exponent, 0), number(low), number(half))
                                           : number(kFraction + 1);
  Value* up = c.b.cast(c.b.call("greater_equal", {fraction, least}), DType::u32);
  Value* code = c.b.add(exponent, up);
  if (saturates) code = c.b.min(code, number(kLargest));
  Value* none = is("greater", size, kInfinity);
  if (!saturates) none = c.b.call("or", {c.b.call("or", {none, is("equal", size, kInfinity)}), is("less", size, half)});
  code = c.b.where(none, number(kNaN), code);
  return c.b.call("bitcast", {c.b.cast(code, DType::u8)}, {{"dtype", DType::f8e8m0}});
}

Value* cast_to(OpContext& c, DType dtype) {
  Value* x = c.input(0);
  const bool saturates = c.flag("saturate", true);
  const std::string round_mode = c.text("round_mode", "up");
  const DType from = x->type.dtype;
  if (dtype == DType::f8e8m0 && from != dtype && from != DType::string) return as_power_of_two(c, x, saturates, round_mode);
  if (is_narrow_float(dtype) && from != DType::string) return as_narrow_float(c, x, dtype, saturates);
  // To integers of 4 and 2 bits real numbers are rounded.
  if (is_narrow(dtype) && (is_float(from) || is_narrow_float(from)))
    return c.b.cast(c.b.unary("round", is_float(from) ? x : c.b.cast(x, DType::f32)), dtype);
  const bool cuts = dtype == DType::bf16 && c.opset() < 19 && (from == DType::f32 || from == DType::f64);
  return cuts ? cut_off(c, x) : c.b.cast(x, dtype);
}

Outputs cast(OpContext& c) { return {cast_to(c, c.dtype("to"))}; }

Outputs cast_like(OpContext& c) { return {cast_to(c, c.input(1)->type.dtype)}; }

Outputs bit_cast(OpContext& c) {
  const DType from = c.input(0)->type.dtype, to = c.dtype("to");
  if (to == DType::string) c.fail("a type of numbers", "STRING");
  if (width_bits(from) != width_bits(to))
    c.fail("element types of one width",
           fmt::format("{} of {} bits and {} of {}", name_of(from), width_bits(from), name_of(to), width_bits(to)));
  return {from == to ? c.input(0) : c.b.call("bitcast", {c.input(0)}, {{"dtype", to}})};
}

Outputs clip_attributes(OpContext& c) {
  Value* x = c.input(0);
  if (c.has("min")) x = c.b.max(x, c.b.scalar(x->type.dtype, c.real("min")));
  if (c.has("max")) x = c.b.min(x, c.b.scalar(x->type.dtype, c.real("max")));
  return {x};
}

Outputs clip_inputs(OpContext& c) {
  Value* x = c.input(0);
  const auto bound = [&](std::size_t i) {
    Value* value = c.input(i);
    if (!(value->type.elements() == Expr(1))) c.fail("one number as bound", value->type.text());
    return c.b.reshape(value, {});
  };
  if (c.optional_input(1)) x = c.b.max(x, bound(1));
  if (c.optional_input(2)) x = c.b.min(x, bound(2));
  return {x};
}

Outputs bit_shift(OpContext& c) {
  const std::string direction = c.text("direction");
  if (direction != "LEFT" && direction != "RIGHT") c.fail("direction LEFT or RIGHT", printable(direction));
  return {c.b.call(direction == "LEFT" ? "shift_left" : "shift_right", {c.input(0), c.input(1)})};
}

constexpr OpRow kMathRows[] = {
    {"Abs", 1, 1, 1, unary, "abs"},
    {"Acos", 7, 1, 1, unary, "acos"},
    {"Acosh", 9, 1, 1, unary, "acosh"},
    {"Asin", 7, 1, 1, unary, "asin"},
    {"Asinh", 9, 1, 1, unary, "asinh"},
    {"Atan", 7, 1, 1, unary, "atan"},
    {"Atanh", 9, 1, 1, unary, "atanh"},
    {"Ceil", 1, 1, 1, unary, "ceil"},
    {"Cos", 7, 1, 1, unary, "cos"},
    {"Cosh", 9, 1, 1, unary, "cosh"},
    {"Erf", 9, 1, 1, unary, "erf"},
    {"Exp", 1, 1, 1, unary, "exp"},
    {"Floor", 1, 1, 1, unary, "floor"},
    {"IsNaN", 9, 1, 1, unary, "is_nan"},
    {"Log", 1, 1, 1, unary, "log"},
    {"Neg", 1, 1, 1, unary, "neg"},
    {"Not", 1, 1, 1, unary, "not"},
    {"Reciprocal", 1, 1, 1, unary, "reciprocal"},
    {"Round", 11, 1, 1, unary, "round"},
    {"Sign", 9, 1, 1, unary, "sign"},
    {"Sin", 7, 1, 1, unary, "sin"},
    {"Sinh", 9, 1, 1, unary, "sinh"},
    {"Sqrt", 1, 1, 1, unary, "sqrt"},
    {"Tan", 7, 1, 1, unary, "tan"},
    {"IsInf", 10, 1, 1, is_infinite},
    {"Add", 7, 2, 2, binary, "add"},
    {"And", 7, 2, 2, binary, "and"},
    {"Div", 7, 2, 2, binary, "div"},
    {"Equal", 7, 2, 2, binary, "equal"},
    {"Greater", 7, 2, 2, binary, "greater"},
    {"GreaterOrEqual", 12, 2, 2, binary, "greater_equal"},
    {"Less", 7, 2, 2, binary, "less"},
    {"LessOrEqual", 12, 2, 2, binary, "less_equal"},
    {"Mul", 7, 2, 2, binary, "mul"},
    {"Or", 7, 2, 2, binary, "or"},
    {"Sub", 7, 2, 2, binary, "sub"},
    {"Xor", 7, 2, 2, binary, "xor"},
    {"BitShift", 11, 2, 2, bit_shift},
    {"BitwiseAnd", 18, 2, 2, binary, "bit_and"},
    {"BitwiseNot", 18, 1, 1, unary, "bit_not"},
    {"BitwiseOr", 18, 2, 2, binary, "bit_or"},
    {"BitwiseXor", 18, 2, 2, binary, "bit_xor"},
    {"Max", 1, 1, kAnyNumber, variadic, "max"},
    {"Min", 1, 1, kAnyNumber, variadic, "min"},
    {"Sum", 1, 1, kAnyNumber, variadic, "add"},
    {"Mean", 1, 1, kAnyNumber, mean, "add"},
    {"Mod", 10, 2, 2, modulo},
    {"Pow", 7, 2, 2, power},
    {"Where", 9, 3, 3, where},
    {"BitCast", 26, 1, 1, bit_cast},
    {"Cast", 6, 1, 1, cast},
    {"CastLike", 15, 2, 2, cast_like},
    {"Clip", 1, 1, 1, clip_attributes},
    {"Clip", 11, 1, 3, clip_inputs},
};

}  // namespace

std::span<const OpRow> math_rows() { return kMathRows; }

Value* as_narrow_float(OpContext& c, Value* x, DType dtype, bool saturates) {
  if (x->type.dtype == dtype) return x;
  if (saturates && dtype != DType::f4e2m1) {
    if (x->type.dtype != DType::f64) x = c.b.cast(x, DType::f32);
    const DType real = x->type.dtype;
    const double largest = largest_narrow(dtype);
    x = c.b.min(c.b.max(x, c.b.scalar(real, -largest)), c.b.scalar(real, largest));
  }
  // What NaN becomes is open before opset 24; from there on it is the zero with a sign.
  if (dtype == DType::f4e2m1 && c.opset() >= 24 && is_float(x->type.dtype))
    x = c.b.where(c.b.unary("is_nan", x), c.b.scalar(x->type.dtype, -0.0), x);
  return c.b.cast(x, dtype);
}

}  // namespace oclc::onnx

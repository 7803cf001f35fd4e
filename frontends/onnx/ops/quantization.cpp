// Quantised numbers: x = (q - zero point) * scale. Products of integers: integer_products.cpp.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "frontends/onnx/ops/quantization.h"
#include "frontends/onnx/ops/window.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

struct Range {
  double low, high;
};

Range range_of(OpContext& c, DType dtype) {
  switch (dtype) {
    case DType::u8:
      return {0, 255};
    case DType::i8:
      return {-128, 127};
    case DType::u16:
      return {0, 65535};
    case DType::i16:
      return {-32768, 32767};
    case DType::u4:
      return {0, 15};
    case DType::i4:
      return {-8, 7};
    case DType::u2:
      return {0, 3};
    case DType::i2:
      return {-2, 1};
    default:
      c.unsupported("a quantised type of integers of 2, 4, 8 or 16 bits", std::string(name_of(dtype)));
  }
}

// A scale or zero point as it broadcasts against `like`: one number, one of each position along `axis`, or, with a block size,
// one of each block along it.
Value* spread(OpContext& c, Value* v, Value* like, std::int64_t axis, std::int64_t block) {
  const Shape& shape = like->type.shape;
  if (v->type.elements() == Expr(1) && v->type.rank() <= 1) return c.b.reshape(v, {});
  const std::size_t at = c.axis(axis, shape.size());
  if (block == 0) {
    if (v->type.rank() != 1 || !(v->type.shape[0] == shape[at]))
      c.fail(fmt::format("one number, or {} along axis {}", shape[at].text(), at), v->type.text());
    Shape column{v->type.shape[0]};
    column.resize(shape.size() - at, Expr(1));
    return c.b.reshape(v, std::move(column));
  }
  Shape wanted = shape;
  wanted[at] = ceil_div(shape[at], Expr(block));
  if (!(v->type.shape == wanted)) c.fail("numbers of each block, " + text_of(wanted), v->type.text());
  // Every block's number as often as it has elements, and then as many as there are.
  Shape apart = wanted, repeated;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(at) + 1, Expr(1));
  repeated = apart;
  repeated[at + 1] = block;
  Shape joined = wanted;
  joined[at] *= Expr(block);
  Value* wide = c.b.reshape(c.b.expand(c.b.reshape(v, apart), repeated), joined);
  return c.b.slice_axis(wide, static_cast<std::int64_t>(at), Expr(0), shape[at]);
}

DType dtype_attribute(OpContext& c, std::string_view name, DType otherwise) {
  return c.integer(name, 0) != 0 ? c.dtype(name) : otherwise;
}

// Divisors whose reciprocals and remainders are normal numbers.
constexpr double kLeastDivisor = 0x1p-60, kLargestDivisor = 0x1p60;
// What is divided is cut to this many times the divisor: quantised numbers are far smaller, and its remainder is finite.
constexpr double kMostMultiples = 1 << 20;

// x / divisor, rounded correctly. By known numbers it takes no division: the quotient by the reciprocal, twice corrected by its
// remainder, which is exact (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
Value* divided(OpContext& c, Value* x, Value* divisor) {
  const auto known = x->type.dtype == DType::f32 ? c.known_value(divisor) : std::nullopt;
  if (!known) return c.b.div(x, divisor);
  HostTensor reciprocal(DType::f32, known->shape()), negative(DType::f32, known->shape()), most(DType::f32, known->shape()),
      least(DType::f32, known->shape());
  int exponent = 0;
  bool shifts = true;  // by powers of two
  for (std::int64_t i = 0; i < known->elements(); ++i) {
    const double s = known->at(i);
    if (!(std::fabs(s) >= kLeastDivisor && std::fabs(s) <= kLargestDivisor)) return c.b.div(x, divisor);
    shifts = shifts && std::fabs(std::frexp(s, &exponent)) == 0.5;
    reciprocal.set(i, 1 / s);
    negative.set(i, -s);
    most.set(i, kMostMultiples * std::fabs(s));
    least.set(i, -kMostMultiples * std::fabs(s));
  }
  if (shifts) return c.b.div(x, divisor);
  x = c.b.min(c.b.max(x, c.b.constant(std::move(least))), c.b.constant(std::move(most)));
  Value *by = c.b.constant(std::move(reciprocal)), *minus = c.b.constant(std::move(negative)), *y = c.b.mul(x, by);
  for (int i = 0; i < 2; ++i) y = c.b.call("fma", {c.b.call("fma", {y, minus, x}), by, y});
  return y;
}

Outputs quantize(OpContext& c) {
  const std::int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0);
  Value *x = c.input(0), *zero = c.optional_input(2);
  const DType dtype = dtype_attribute(c, "output_dtype", zero ? zero->type.dtype : DType::u8);
  if (zero && zero->type.dtype != dtype) c.fail("output_dtype as the zero point has it", std::string(name_of(dtype)));
  const bool saturates = c.flag("saturate", true);
  Value* scale = spread(c, c.input(1), x, axis, block);
  if (zero) zero = spread(c, zero, x, axis, block);
  // A scale that is a power of two, of a type that nothing is computed in, divides in the type of what it scales.
  const DType own = is_float(scale->type.dtype) ? scale->type.dtype : is_float(x->type.dtype) ? x->type.dtype : DType::f32;
  x = c.b.cast(x, dtype_attribute(c, "precision", own));
  if (!is_narrow_float(dtype)) return {quantized(c, x, scale, zero, dtype)};
  Value* y = c.b.div(x, c.b.cast(scale, x->type.dtype));
  if (zero) y = c.b.add(y, c.b.cast(zero, y->type.dtype));
  return {as_narrow_float(c, y, dtype, saturates)};
}

// x - zero, for integers of at most 16 bits and i32: in a type that holds it.
Value* centred(OpContext& c, Value* x, Value* zero) {
  if (x->type.dtype != DType::i32) range_of(c, x->type.dtype);
  const DType dtype = x->type.dtype == DType::i32 ? DType::i32 : DType::f32;
  Value* wide = c.b.cast(x, dtype);
  return zero ? c.b.sub(wide, c.b.cast(zero, dtype)) : wide;
}

// Numbers of each block against a tensor whose axis `at` is split into blocks of `block`.
Value* by_blocks(OpContext& c, Value* v, const Shape& shape, std::size_t at, std::int64_t block) {
  Shape wanted = shape;
  wanted[at] = ceil_div(shape[at], Expr(block));
  if (!(v->type.shape == wanted)) c.fail("numbers of each block, " + text_of(wanted), v->type.text());
  wanted.insert(wanted.begin() + static_cast<std::ptrdiff_t>(at) + 1, Expr(1));
  return c.b.reshape(v, std::move(wanted));
}

Outputs dequantize(OpContext& c) {
  const std::int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0);
  Value *x = c.input(0), *scale = c.input(1), *zero = c.optional_input(2);
  require_zero_of(c, zero, x->type.dtype);
  const Shape whole = x->type.shape;
  const std::size_t at = block > 0 ? c.axis(axis, whole.size()) : 0;
  // Whole blocks are an axis of their own, so that each number stands once for its block.
  const bool apart = block > 0 && scale->type.rank() == whole.size() && floor_mod(whole[at], Expr(block)) == Expr(0);
  if (apart) {
    Shape split = whole;
    split[at] = floor_div(whole[at], Expr(block));
    split.insert(split.begin() + static_cast<std::ptrdiff_t>(at) + 1, Expr(block));
    x = c.b.reshape(x, std::move(split));
  }
  const auto numbers = [&](Value* v) { return apart ? by_blocks(c, v, whole, at, block) : spread(c, v, x, axis, block); };
  scale = numbers(scale);
  if (zero) zero = numbers(zero);
  const DType real = dtype_attribute(c, "output_dtype", is_float(scale->type.dtype) ? scale->type.dtype : DType::f32);
  Value* y = nullptr;
  if (is_narrow_float(x->type.dtype)) {
    y = c.b.cast(x, real);
    if (zero) y = c.b.sub(y, c.b.cast(zero, real));
  } else {
    y = c.b.cast(centred(c, x, zero), real);
  }
  y = c.b.mul(y, c.b.cast(scale, real));
  return {apart ? c.b.reshape(y, whole) : y};
}

Outputs dynamic_quantize(OpContext& c) { return dynamically_quantized(c, c.input(0)); }

Outputs matmul_integer(OpContext& c) {
  return {integer_product(c, c.input(0), c.input(1), c.optional_input(2), c.optional_input(3))};
}

Value* rescaled(OpContext& c, Value* sum, Value* scale_a, Value* scale_b, Value* scale_y, Value* zero_y) {
  const Value* zero = zero_y;
  Value* scale = c.b.div(c.b.mul(scale_a, scale_b), scale_y);
  Value* y = c.b.mul(c.b.cast(sum, DType::f32), c.b.cast(scale, DType::f32));
  return quantized(c, y, c.b.scalar(DType::f32, 1), zero_y, zero->type.dtype);
}

Outputs qlinear_matmul(OpContext& c) {
  Value* sum = integer_product(c, c.input(0), c.input(3), c.input(2), c.input(5));
  return {rescaled(c, sum, of_rows(c, c.input(1), true), of_rows(c, c.input(4), false), spread(c, c.input(6), sum, 0, 0),
                   spread(c, c.input(7), sum, 0, 0))};
}

Outputs convolution_integer(OpContext& c) {
  return {integer_convolution(c, c.input(0), c.input(1), c.optional_input(2), c.optional_input(3))};
}

Outputs qlinear_convolution(OpContext& c) {
  Value* sum = integer_convolution(c, c.input(0), c.input(3), c.input(2), c.input(5));
  const std::size_t rank = sum->type.rank();
  if (Value* bias = c.optional_input(8)) sum = c.b.add(sum, per_feature(c, bias, 1, rank));
  return {rescaled(c, sum, c.b.reshape(c.input(1), {}), per_feature(c, c.input(4), 1, rank), c.b.reshape(c.input(6), {}),
                   c.b.reshape(c.input(7), {}))};
}

// The same with the channels last, if it says so.
Outputs qlinear_convolution_nhwc(OpContext& c) {
  if (!c.flag("channels_last")) return qlinear_convolution(c);
  c.set_input(0, channels_second(c, c.input(0)));
  return {channels_last(c, qlinear_convolution(c).at(0))};
}

constexpr OpRow kQuantizationRows[] = {
    {"ConvInteger", 10, 2, 4, convolution_integer},
    {"DequantizeLinear", 10, 2, 3, dequantize},
    {"DynamicQuantizeLinear", 11, 1, 1, dynamic_quantize},
    {"MatMulInteger", 10, 2, 4, matmul_integer},
    {"QLinearConv", 10, 8, 9, qlinear_convolution},
    {"QLinearMatMul", 10, 8, 8, qlinear_matmul},
    {"QuantizeLinear", 10, 2, 3, quantize},
    {"com.microsoft.DequantizeLinear", 1, 2, 3, dequantize},
    {"com.microsoft.QLinearConv", 1, 8, 9, qlinear_convolution_nhwc},
    {"com.microsoft.QuantizeLinear", 1, 2, 3, quantize},
};

}  // namespace

Value* quantized(OpContext& c, Value* x, Value* scale, Value* zero, DType dtype, bool zero_first) {
  const Range range = range_of(c, dtype);
  Value* y = divided(c, x, c.b.cast(scale, x->type.dtype));
  const DType real = y->type.dtype == DType::f64 ? DType::f64 : DType::f32;  // which hold all integers of 16 bits
  const auto with_zero = [&] { return zero ? c.b.add(y, c.b.cast(zero, y->type.dtype)) : y; };
  if (zero_first) y = with_zero();
  y = c.b.cast(c.b.unary("round", y), real);
  if (!zero_first) y = with_zero();
  y = c.b.min(c.b.max(y, c.b.scalar(real, range.low)), c.b.scalar(real, range.high));
  return c.b.cast(y, dtype);
}

Value* dequantized(OpContext& c, Value* x, Value* scale, Value* zero) {
  return c.b.mul(c.b.cast(centred(c, x, zero), scale->type.dtype), scale);
}

Outputs dynamically_quantized(OpContext& c, Value* x) {
  Ints axes(x->type.rank());
  std::iota(axes.begin(), axes.end(), 0);
  Value* nothing = c.b.scalar(DType::f32, 0);
  Value* low = c.b.min(c.b.reduce("reduce_min", x, axes, false), nothing);
  Value* high = c.b.max(c.b.reduce("reduce_max", x, axes, false), nothing);
  Value* scale = c.b.div(c.b.sub(high, low), c.b.scalar(DType::f32, 255));
  // Of zeros alone any scale is right but 0, by which they would be divided.
  scale = c.b.where(c.b.call("equal", {scale, nothing}), c.b.scalar(DType::f32, 1), scale);
  Value* zero = quantized(c, c.b.unary("neg", low), scale, nullptr, DType::u8);
  return {quantized(c, x, scale, zero, DType::u8), scale, zero};
}

std::span<const OpRow> quantization_rows() { return kQuantizationRows; }

}  // namespace oclc::onnx

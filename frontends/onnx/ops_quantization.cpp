// Quantised numbers: x = (q - zero point) * scale. Integer products are summed in i32.
#include <fmt/format.h>

#include <numeric>

#include "frontends/onnx/quantization.h"
#include "frontends/onnx/table.h"
#include "frontends/onnx/window.h"

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
    default:
      c.unsupported("a quantised type of integers of 4, 8 or 16 bits", std::string(name_of(dtype)));
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

Outputs quantize(OpContext& c) {
  const std::int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0);
  Value *x = c.input(0), *zero = c.optional_input(2);
  const DType dtype = dtype_attribute(c, "output_dtype", zero ? zero->type.dtype : DType::u8);
  if (zero && zero->type.dtype != dtype) c.fail("output_dtype as the zero point has it", std::string(name_of(dtype)));
  const bool saturates = c.flag("saturate", true);
  Value* scale = spread(c, c.input(1), x, axis, block);
  if (zero) zero = spread(c, zero, x, axis, block);
  x = c.b.cast(x, dtype_attribute(c, "precision", scale->type.dtype));
  if (!is_narrow_float(dtype)) return {quantized(c, x, scale, zero, dtype)};
  Value* y = c.b.div(x, c.b.cast(scale, x->type.dtype));
  if (zero) y = c.b.add(y, c.b.cast(zero, y->type.dtype));
  return {as_narrow_float(c, y, dtype, saturates)};
}

// x - zero in i32, for integers of at most 16 bits and i32.
Value* centred(OpContext& c, Value* x, Value* zero) {
  if (x->type.dtype != DType::i32) range_of(c, x->type.dtype);
  Value* wide = c.b.cast(x, DType::i32);
  return zero ? c.b.sub(wide, c.b.cast(zero, DType::i32)) : wide;
}

Outputs dequantize(OpContext& c) {
  const std::int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0);
  Value *x = c.input(0), *scale = spread(c, c.input(1), x, axis, block);
  Value* zero = c.optional_input(2) ? spread(c, c.input(2), x, axis, block) : nullptr;
  const DType real = dtype_attribute(c, "output_dtype", scale->type.dtype);
  Value* y = nullptr;
  if (is_narrow_float(x->type.dtype)) {
    y = c.b.cast(x, real);
    if (zero) y = c.b.sub(y, c.b.cast(zero, real));
  } else {
    y = c.b.cast(centred(c, x, zero), real);
  }
  return {c.b.mul(y, c.b.cast(scale, real))};
}

Outputs dynamic_quantize(OpContext& c) { return dynamically_quantized(c, c.input(0)); }

// A zero point of the rows of a, or of the columns of b.
Value* of_rows(OpContext& c, Value* zero, bool rows) {
  if (!zero || zero->type.rank() != 1 || zero->type.elements() == Expr(1)) return zero ? spread(c, zero, zero, 0, 0) : nullptr;
  return rows ? c.b.reshape(zero, {zero->type.shape[0], Expr(1)}) : zero;
}

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

// One number per feature, for a convolution's weights or result.
Value* per_feature(OpContext& c, Value* v, std::size_t axis, std::size_t rank) {
  if (v->type.elements() == Expr(1)) return c.b.reshape(v, {});
  if (v->type.rank() != 1) c.fail("one number, or one of each feature", v->type.text());
  Shape shape{v->type.shape[0]};
  shape.resize(rank - axis, Expr(1));
  return c.b.reshape(v, std::move(shape));
}

// The windows of x as rows of a matrix (im2col), times the weights as another: the convolution in i32.
Value* integer_convolution(OpContext& c, Value* x, Value* w, Value* zero_x, Value* zero_w) {
  const std::size_t axes = spatial_axes(c);
  const Window window = window_of_weights(c, w);
  const std::int64_t group = c.integer("group", 1);
  const std::size_t rank = axes + 2;
  x = centred(c, x, zero_x ? c.b.reshape(zero_x, {}) : nullptr);
  w = centred(c, w, zero_w ? per_feature(c, zero_w, 0, rank) : nullptr);
  const Shape &sx = x->type.shape, &sw = w->type.shape;
  const Expr groups(group), features = floor_div(sw[0], groups);
  if (group < 1 || !(sw[1] * groups == sx[1]) || !(features * groups == sw[0]))
    c.fail("channels and features that the groups divide", fmt::format("{} and {}, group {}", text_of(sx), text_of(sw), group));
  Value* rows = c.b.call("unfold", {x},
                         {{"kernel", window.kernel},
                          {"strides", window.strides},
                          {"dilations", window.dilations},
                          {"pads", window.pads},
                          {"group", group}});
  // [group, n, positions.., taps.., channels] -> [group, n * positions, taps * channels]
  const std::size_t lead = group > 1 ? 1 : 0;
  const Shape spread_shape = rows->type.shape;
  const std::span<const Expr> all(spread_shape);
  const Expr positions = product(all.subspan(lead, 1 + axes)), terms = product(all.subspan(lead + 1 + axes));
  rows = c.b.reshape(rows, {groups, positions, terms});
  // [features, channels, taps..] -> [group, taps * channels, features of the group]
  Ints perm{0};
  for (std::size_t i = 2; i < rank; ++i) perm.push_back(static_cast<std::int64_t>(i));
  perm.push_back(1);
  Value* columns = c.b.transpose(c.b.reshape(c.b.transpose(w, perm), {groups, features, terms}), {0, 2, 1});
  Value* y = c.b.matmul(rows, columns);  // [group, n * positions, features]
  Shape shape{groups, sx[0]};
  for (std::size_t i = 0; i < axes; ++i) shape.push_back(all[lead + 1 + i]);
  shape.push_back(features);
  // -> [n, group, features, positions..]
  Ints back{1, 0, static_cast<std::int64_t>(axes) + 2};
  for (std::size_t i = 0; i < axes; ++i) back.push_back(static_cast<std::int64_t>(i) + 2);
  Shape result{sx[0], sw[0]};
  for (std::size_t i = 0; i < axes; ++i) result.push_back(all[lead + 1 + i]);
  return c.b.reshape(c.b.transpose(c.b.reshape(y, std::move(shape)), std::move(back)), std::move(result));
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

Value* quantized(OpContext& c, Value* x, Value* scale, Value* zero, DType dtype) {
  const Range range = range_of(c, dtype);
  Value* y = c.b.unary("round", c.b.div(x, c.b.cast(scale, x->type.dtype)));
  const DType real = y->type.dtype == DType::f64 ? DType::f64 : DType::f32;  // which hold all integers of 16 bits
  y = c.b.cast(y, real);
  if (zero) y = c.b.add(y, c.b.cast(zero, real));
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

Value* integer_product(OpContext& c, Value* a, Value* b, Value* zero_a, Value* zero_b) {
  if (a->type.rank() < 2 || b->type.rank() < 2) c.unsupported("operands of rank 2 or more", a->type.text());
  return c.b.matmul(centred(c, a, of_rows(c, zero_a, true)), centred(c, b, of_rows(c, zero_b, false)));
}

std::span<const OpRow> quantization_rows() { return kQuantizationRows; }

}  // namespace oclc::onnx

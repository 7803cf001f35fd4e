// Operators of com.microsoft on integers of 8 bits: each the operator on real numbers, between what its scales and zero points
// say.
#include <fmt/format.h>

#include "frontends/onnx/ops/quantization.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Value* scalar_operand(OpContext& c, Value* v) {
  if (!v) return nullptr;
  if (!(v->type.elements() == Expr(1))) c.unsupported("one scale and zero point of a tensor", v->type.text());
  return c.b.reshape(v, {});
}

// Inputs i, i + 1 and i + 2: a tensor, its scale and its zero point.
Value* real_operand(OpContext& c, std::size_t i) {
  return dequantized(c, c.input(i), scalar_operand(c, c.input(i + 1)), scalar_operand(c, c.optional_input(i + 2)));
}

// y by the scale and the zero point that are inputs i and i + 1.
Value* by_result(OpContext& c, Value* y, std::size_t i, DType dtype) {
  return quantized(c, y, scalar_operand(c, c.input(i)), scalar_operand(c, c.optional_input(i + 1)), dtype);
}

Outputs quantized_binary(OpContext& c) {
  Value* y = c.b.call(c.core(), {real_operand(c, 0), real_operand(c, 3)});
  return {by_result(c, y, 6, c.input(0)->type.dtype)};
}

Outputs quantized_unary(OpContext& c) {
  Value* x = real_operand(c, 0);
  Value* y = nullptr;
  if (c.core() == "leaky_relu") {
    y = c.b.where(c.b.call("less", {x, c.b.scalar(DType::f32, 0)}), c.b.mul(x, c.real("alpha", 0.01)), x);
  } else {
    y = c.b.unary(c.core(), x);
  }
  return {by_result(c, y, 3, c.input(0)->type.dtype)};
}

Outputs quantized_softmax(OpContext& c) {
  Value* x = real_operand(c, 0);
  const bool old = c.integer("opset") < 13;
  const Shape shape = x->type.shape;
  const std::size_t axis = c.axis_attribute(old ? 1 : -1);
  if (!old) return {by_result(c, c.b.softmax(x, static_cast<std::int64_t>(axis)), 3, c.input(0)->type.dtype)};
  const std::span<const Expr> all(shape);
  Value* flat = c.b.reshape(x, {product(all.first(axis)), product(all.subspan(axis))});
  return {by_result(c, c.b.reshape(c.b.softmax(flat, 1), shape), 3, c.input(0)->type.dtype)};
}

Outputs quantized_where(OpContext& c) {
  const auto real = [&](std::size_t i) {
    return dequantized(c, c.input(i), scalar_operand(c, c.input(i + 1)), scalar_operand(c, c.input(i + 2)));
  };
  Value* y = c.b.where(c.input(0), real(1), real(4));
  return {by_result(c, y, 7, c.input(1)->type.dtype)};
}

Outputs quantized_concat(OpContext& c) {
  if (c.inputs() < 5 || (c.inputs() - 2) % 3 != 0)
    c.fail("a scale, a zero point, and three inputs an operand", fmt::format("{} inputs", c.inputs()));
  std::vector<Value*> parts;
  for (std::size_t i = 2; i < c.inputs(); i += 3) parts.push_back(real_operand(c, i));
  const auto axis = static_cast<std::int64_t>(c.axis(c.integer("axis"), c.rank(2)));
  return {by_result(c, c.b.concat(std::move(parts), axis), 0, c.input(2)->type.dtype)};
}

Outputs reduce_mean(OpContext& c) {
  Value* x = real_operand(c, 0);
  Ints axes = c.integers("axes", Ints{});
  for (std::int64_t i = 0; axes.empty() && i < static_cast<std::int64_t>(x->type.rank()); ++i) axes.push_back(i);
  Value* y = c.b.reduce("reduce_mean", x, axes, c.flag("keepdims", true));
  return {by_result(c, y, 3, c.input(0)->type.dtype)};
}

// The axes of positions of a tensor with its channels last, or behind the batch.
Ints position_axes(OpContext& c, bool channels_last) {
  Ints axes;
  const auto rank = static_cast<std::int64_t>(c.rank(0));
  for (std::int64_t i = channels_last ? 1 : 2; i < (channels_last ? rank - 1 : rank); ++i) axes.push_back(i);
  return axes;
}

Outputs global_average(OpContext& c) {
  Value* y = c.b.reduce("reduce_mean", real_operand(c, 0), position_axes(c, c.flag("channels_last")), true);
  return {by_result(c, y, 3, c.input(0)->type.dtype)};
}

Outputs multiply_integer(OpContext& c) {
  const auto whole = [&](std::size_t i) {
    Value* x = c.b.cast(c.input(i), DType::i32);
    return c.optional_input(i + 1) ? c.b.sub(x, c.b.cast(scalar_operand(c, c.input(i + 1)), DType::i32)) : x;
  };
  return {c.b.mul(whole(0), whole(2))};
}

Outputs reduce_sum_integer(OpContext& c) {
  Ints axes = c.integers("axes", Ints{});
  for (std::int64_t i = 0; axes.empty() && i < static_cast<std::int64_t>(c.rank(0)); ++i) axes.push_back(i);
  Value* x = c.b.cast(c.input(0), c.input(0)->type.dtype == DType::u8 ? DType::u32 : DType::i32);
  return {c.b.reduce("reduce_sum", x, axes, c.flag("keepdims", true))};
}

Outputs quantized_gemm(OpContext& c) {
  Value *a = c.input(0), *b = c.input(3);
  for (const Value* x : {a, b})
    if (x->type.rank() != 2) c.fail("matrices", x->type.text());
  if (c.flag("transA")) a = c.b.transpose(a, {1, 0});
  if (c.flag("transB")) b = c.b.transpose(b, {1, 0});
  Value* sum = integer_product(c, a, b, c.optional_input(2), c.optional_input(5));
  if (Value* bias = c.optional_input(6)) sum = c.b.add(sum, c.b.cast(bias, DType::i32));
  Value* scale =
      c.b.mul(scalar_operand(c, c.input(1)), c.input(4)->type.rank() == 1 ? c.input(4) : scalar_operand(c, c.input(4)));
  Value* y = c.b.mul(c.b.cast(sum, DType::f32), c.b.mul(scale, c.real("alpha", 1.0)));
  if (!c.optional_input(7)) return {y};
  Value* zero = c.optional_input(8);
  return {by_result(c, y, 7, zero ? zero->type.dtype : c.input(0)->type.dtype)};
}

// The product in integers as real numbers, with a bias.
Value* real_product(OpContext& c, Value* sum, Value* scale_a, Value* scale_b, Value* bias) {
  Value* column = scale_a->type.rank() == 1 && !(scale_a->type.elements() == Expr(1))
                      ? c.b.reshape(scale_a, {scale_a->type.shape[0], Expr(1)})
                      : scale_a;
  Value* y = c.b.mul(c.b.mul(c.b.cast(sum, DType::f32), column), scale_b);
  return bias ? c.b.add(y, bias) : y;
}

Outputs integer_to_float(OpContext& c) {
  Value* sum = integer_product(c, c.input(0), c.input(1), c.optional_input(4), c.optional_input(5));
  return {real_product(c, sum, c.input(2), c.input(3), c.optional_input(6))};
}

Outputs dynamic_matmul(OpContext& c) {
  const Outputs a = dynamically_quantized(c, c.input(0));
  Value* sum = integer_product(c, a[0], c.input(1), a[2], c.optional_input(3));
  return {real_product(c, sum, a[1], c.input(2), c.optional_input(4))};
}

constexpr OpRow kFusedQuantizedRows[] = {
    {"com.microsoft.DynamicQuantizeMatMul", 1, 3, 5, dynamic_matmul},
    {"com.microsoft.MatMulIntegerToFloat", 1, 4, 7, integer_to_float},
    {"com.microsoft.MulInteger", 1, 3, 4, multiply_integer},
    {"com.microsoft.QGemm", 1, 5, 9, quantized_gemm},
    {"com.microsoft.QLinearAdd", 1, 7, 8, quantized_binary, "add"},
    {"com.microsoft.QLinearConcat", 1, 5, kAnyNumber, quantized_concat},
    {"com.microsoft.QLinearGlobalAveragePool", 1, 5, 5, global_average},
    {"com.microsoft.QLinearLeakyRelu", 1, 4, 5, quantized_unary, "leaky_relu"},
    {"com.microsoft.QLinearMul", 1, 7, 8, quantized_binary, "mul"},
    {"com.microsoft.QLinearReduceMean", 1, 4, 5, reduce_mean},
    {"com.microsoft.QLinearSigmoid", 1, 4, 5, quantized_unary, "sigmoid"},
    {"com.microsoft.QLinearSoftmax", 1, 4, 5, quantized_softmax},
    {"com.microsoft.QLinearWhere", 1, 9, 9, quantized_where},
    {"com.microsoft.ReduceSumInteger", 1, 1, 1, reduce_sum_integer},
};

}  // namespace

std::span<const OpRow> fused_quantized_rows() { return kFusedQuantizedRows; }

}  // namespace oclc::onnx

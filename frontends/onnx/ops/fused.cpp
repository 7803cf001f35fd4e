// Operators of com.microsoft that ONNX Runtime's optimisers put in the place of several: products, convolutions, normalisations
// and activations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontends/onnx/ops/activation.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Outputs fused_matmul(OpContext& c) {
  Value* operands[2] = {};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    Value* x = c.input(i);
    if (c.flag(i == 0 ? "transBatchA" : "transBatchB")) {
      if (x->type.rank() < 3) c.fail("operands of rank 3 or more", x->type.text());
      // The first axis becomes the one before the last.
      Ints perm(x->type.rank());
      std::iota(perm.begin(), perm.end(), 0);
      std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
      x = c.b.transpose(x, std::move(perm));
    }
    operands[i] = x;
  }
  Value *a = operands[0], *b = operands[1];
  const bool row = a->type.rank() == 1, column = b->type.rank() == 1;
  if (row) a = c.b.reshape(a, {Expr(1), a->type.shape[0]});
  if (column) b = c.b.reshape(b, {b->type.shape[0], Expr(1)});
  Value* y = c.b.matmul(a, b, !row && c.flag("transA"), !column && c.flag("transB"));
  Shape shape = y->type.shape;
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  y = c.b.reshape(y, std::move(shape));
  const double alpha = c.real("alpha", 1.0);
  if (alpha != 1) y = c.b.mul(y, alpha);
  if (c.core() != "activation") return {y};
  c.ignore({"activation_axis", "activation_gamma"});
  std::vector<double> parameters;
  if (c.has("activation_alpha")) parameters.push_back(c.real("activation_alpha"));
  if (c.has("activation_beta")) parameters.push_back(c.real("activation_beta"));
  return {activated(c, y, c.text("activation"), parameters)};
}

Outputs fused_gemm(OpContext& c) {
  const double alpha = c.real("alpha", 1.0), beta = c.real("beta", 1.0);
  Value* y = c.b.matmul(c.input(0), c.input(1), c.flag("transA"), c.flag("transB"));
  if (alpha != 1) y = c.b.mul(y, alpha);
  if (Value* bias = c.optional_input(2)) y = c.b.add(y, beta == 1 ? bias : c.b.mul(bias, beta));
  std::vector<double> parameters;
  if (c.has("activation_alpha")) parameters.push_back(c.real("activation_alpha"));
  if (c.has("activation_beta")) parameters.push_back(c.real("activation_beta"));
  c.ignore({"activation_gamma"});
  return {activated(c, y, c.text("activation", ""), parameters)};
}

Value* gelu_by_erf(OpContext& c, Value* x) { return c.b.mul(c.b.mul(x, 0.5), c.b.add(c.b.erf(c.b.mul(x, std::sqrt(0.5))), 1)); }

Value* gelu_by_tanh(OpContext& c, Value* x) {
  Value* cube = c.b.mul(c.b.mul(x, x), x);
  Value* inner = c.b.tanh(c.b.add(c.b.mul(x, 0.797885), c.b.mul(cube, 0.035677)));
  return c.b.mul(c.b.mul(x, 0.5), c.b.add(inner, 1));
}

Value* with_bias(OpContext& c, std::size_t i) { return c.optional_input(i) ? c.b.add(c.input(0), c.input(i)) : c.input(0); }

Outputs bias_gelu(OpContext& c) { return {gelu_by_erf(c, with_bias(c, 1))}; }
Outputs fast_gelu(OpContext& c) { return {gelu_by_tanh(c, with_bias(c, 1))}; }

Outputs quick_gelu(OpContext& c) {
  Value* x = c.input(0);
  return {c.b.mul(x, c.b.sigmoid(c.b.mul(x, c.real("alpha", 1.702))))};
}

// Halves along the last axis: one times the gelu of the other.
Outputs bias_split_gelu(OpContext& c) {
  Value* x = with_bias(c, 1);
  const Expr whole = x->type.shape.back(), half = floor_div(whole, Expr(2));
  return {c.b.mul(c.b.slice_axis(x, -1, Expr(0), half), gelu_by_erf(c, c.b.slice_axis(x, -1, half, half)))};
}

Outputs bias_add(OpContext& c) {
  Value* y = with_bias(c, 1);
  return {c.b.add(y, c.input(2))};
}

// The sum of the operand, what skips the layers between and a bias, normalised; the sum is the last result.
Outputs skip_normalization(OpContext& c) {
  const bool simple = c.core() == "rms";
  const double epsilon = c.real("epsilon", 1e-12);
  Value* sum = c.b.add(c.input(0), c.input(1));
  if (Value* bias = c.optional_input(simple ? 3 : 4)) sum = c.b.add(sum, bias);
  Value* y =
      simple ? c.b.rms_norm(sum, c.input(2), -1, epsilon) : c.b.layer_norm(sum, c.input(2), c.optional_input(3), -1, epsilon);
  return {y, nullptr, nullptr, sum};
}

Outputs embed_normalization(OpContext& c) {
  c.ignore({"mask_index_type"});
  const auto row = [&](Value* table, Value* at) { return c.b.gather(table, c.b.cast(at, DType::i64), 0); };
  const Shape& ids = c.shape(0);
  if (ids.size() != 2) c.fail("words of each batch and step", c.input(0)->type.text());
  Value* places = c.optional_input(8);
  if (!places) places = c.b.iota({Expr(1), ids[1]}, 1, DType::i64);
  Value* sum = c.b.add(row(c.input(2), c.input(0)), row(c.input(3), places));
  if (c.optional_input(1)) sum = c.b.add(sum, row(c.input(4), c.input(1)));
  Value* y = c.b.layer_norm(sum, c.input(5), c.input(6), -1, c.real("epsilon", 1e-12));
  Value* lengths = nullptr;
  if (Value* mask = c.optional_input(7)) {
    lengths = c.b.reduce("reduce_sum", c.b.cast(mask, DType::i32), {1}, false);
  } else {
    lengths = c.b.expand(c.b.scalar(DType::i32, 0), {ids[0]});
  }
  return {y, lengths, sum};
}

// Softmax of scores and a mask that is of fewer axes.
Outputs bias_softmax(OpContext& c) {
  Value *x = c.input(0), *bias = c.input(1);
  const std::size_t rank = x->type.rank(), axis = c.axis_attribute(1);
  const bool inner = c.flag("is_inner_broadcast", true);
  if (bias->type.rank() != rank) {
    Shape shape = bias->type.shape;
    // Inner: the bias has the axes before, and from `axis` on, with ones between.
    const std::size_t missing = rank > shape.size() ? rank - shape.size() : 0;
    shape.insert(
        shape.begin() + static_cast<std::ptrdiff_t>(inner ? std::min(shape.size(), axis - std::min(axis, missing)) : 0),
        missing, Expr(1));
    bias = c.b.reshape(bias, std::move(shape));
  }
  Value* sum = c.b.add(x, bias);
  const std::span<const Expr> all(sum->type.shape);
  const Shape shape = sum->type.shape;
  Value* flat = c.b.reshape(sum, {product(all.first(axis)), product(all.subspan(axis))});
  return {c.b.reshape(c.b.softmax(flat, 1), shape)};
}

// Elements of `bits` bits, several in a byte, the first in the lowest: [.., n] of u8 as [.., n * 8 / bits].
Value* unpacked_bits(OpContext& c, Value* x, std::int64_t bits) {
  if (bits == 8) return x;
  const std::int64_t count = 8 / bits;
  Shape apart = x->type.shape, joined = apart;
  apart.emplace_back(1);
  joined.back() *= Expr(count);
  Value* wide = c.b.reshape(x, apart);
  std::vector<Value*> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    Value* shifted = i == 0 ? wide : c.b.call("shift_right", {wide, c.b.scalar(DType::u8, static_cast<double>(i * bits))});
    parts.push_back(c.b.call("bit_and", {shifted, c.b.scalar(DType::u8, static_cast<double>((1 << bits) - 1))}));
  }
  return c.b.reshape(c.b.concat(std::move(parts), -1), std::move(joined));
}

// A matrix of weights of few bits, by blocks of terms that have a scale and a zero point each.
Outputs matmul_bits(OpContext& c) {
  c.ignore({"accuracy_level"});
  const std::int64_t terms = c.integer("K"), columns = c.integer("N"), bits = c.integer("bits", 4),
                     block = c.integer("block_size");
  if (bits != 2 && bits != 4 && bits != 8) c.unsupported("weights of 2, 4 or 8 bits", std::to_string(bits));
  if (terms < 1 || columns < 1 || block < 8)
    c.fail("K, N and block_size of a matrix", fmt::format("{}, {}, {}", terms, columns, block));
  if (c.integer("weight_prepacked", 0) != 0) c.unsupported("weights that are not packed for a device", "weight_prepacked");
  if (c.optional_input(4)) c.unsupported("groups of neighbouring terms", "an input g_idx");
  const std::int64_t blocks = (terms + block - 1) / block;
  Value *a = c.input(0), *weights = c.input(1);
  const DType dtype = a->type.dtype;
  const Shape packed{Expr(columns), Expr(blocks), Expr(block * bits / 8)};
  if (weights->type.dtype != DType::u8 || !(weights->type.elements() == product(packed)))
    c.fail(fmt::format("weights {} of u8", text_of(packed)), weights->type.text());
  Value* w = c.b.cast(unpacked_bits(c, c.b.reshape(weights, packed), bits), dtype);
  const Shape per_block{Expr(columns), Expr(blocks), Expr(1)};
  Value* zero = c.optional_input(3);
  if (!zero) {
    zero = c.b.scalar(dtype, static_cast<double>(1 << (bits - 1)));
  } else if (zero->type.dtype == DType::u8) {
    const std::int64_t width = (blocks * bits + 7) / 8;
    zero = unpacked_bits(c, c.b.reshape(zero, {Expr(columns), Expr(width)}), bits);
    zero = c.b.reshape(c.b.cast(c.b.slice_axis(zero, 1, Expr(0), Expr(blocks)), dtype), per_block);
  } else {
    zero = c.b.reshape(zero, per_block);
  }
  w = c.b.mul(c.b.sub(w, zero), c.b.reshape(c.b.cast(c.input(2), dtype), per_block));
  w = c.b.reshape(w, {Expr(columns), Expr(blocks * block)});
  if (blocks * block != terms) w = c.b.slice_axis(w, 1, Expr(0), Expr(terms));
  Value* y = c.b.matmul(a, w, false, true);
  return {c.optional_input(5) ? c.b.add(y, c.input(5)) : y};
}

Outputs expand_dims(OpContext& c) {
  const Ints axis = c.numbers(1, "the axis");
  if (axis.size() != 1) c.fail("one axis", std::to_string(axis.size()));
  Shape shape = c.shape(0);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(c.axis(axis[0], shape.size() + 1)), Expr(1));
  return {c.b.reshape(c.input(0), std::move(shape))};
}

constexpr OpRow kFusedRows[] = {
    {"com.microsoft.BiasAdd", 1, 3, 3, bias_add},
    {"com.microsoft.BiasGelu", 1, 2, 2, bias_gelu},
    {"com.microsoft.BiasSoftmax", 1, 2, 2, bias_softmax},
    {"com.microsoft.BiasSplitGelu", 1, 2, 2, bias_split_gelu},
    {"com.microsoft.EmbedLayerNormalization", 1, 7, 9, embed_normalization},
    {"com.microsoft.ExpandDims", 1, 2, 2, expand_dims},
    {"com.microsoft.FastGelu", 1, 1, 2, fast_gelu},
    {"com.microsoft.FusedGemm", 1, 2, 3, fused_gemm},
    {"com.microsoft.FusedMatMul", 1, 2, 2, fused_matmul},
    {"com.microsoft.FusedMatMulActivation", 1, 2, 2, fused_matmul, "activation"},
    {"com.microsoft.MatMulNBits", 1, 3, 6, matmul_bits},
    {"com.microsoft.QuickGelu", 1, 1, 1, quick_gelu},
    {"com.microsoft.SkipLayerNormalization", 1, 3, 5, skip_normalization, "layer"},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 1, 3, 4, skip_normalization, "rms"},
    {"com.microsoft.TransposeMatMul", 1, 2, 2, fused_matmul},
};

}  // namespace

std::span<const OpRow> fused_rows() { return kFusedRows; }

Value* activated(OpContext& c, Value* y, std::string_view name, const std::vector<double>& parameters) {
  const auto parameter = [&](std::size_t i, double otherwise) { return i < parameters.size() ? parameters[i] : otherwise; };
  const auto number = [&](double value) { return c.b.scalar(y->type.dtype, value); };
  const auto within = [&](Value* x, double low, double high) { return c.b.min(c.b.max(x, number(low)), number(high)); };
  if (name.empty()) return y;
  if (name == "Relu") return c.b.relu(y);
  if (name == "Sigmoid") return c.b.sigmoid(y);
  if (name == "Tanh") return c.b.tanh(y);
  if (name == "Clip") return within(y, parameter(0, -3.4028234663852886e38), parameter(1, 3.4028234663852886e38));
  if (name == "LeakyRelu") return c.b.where(c.b.call("less", {y, number(0)}), c.b.mul(y, parameter(0, 0.01)), y);
  if (name == "HardSigmoid") return within(c.b.add(c.b.mul(y, parameter(0, 0.2)), parameter(1, 0.5)), 0, 1);
  if (name == "Gelu") return gelu_by_erf(c, y);
  c.unsupported("activation Relu, Sigmoid, Tanh, Clip, LeakyRelu, HardSigmoid or Gelu", printable(name));
}

}  // namespace oclc::onnx

// Random numbers from the counter-based generator of the core operator random_bits: element i of a tensor is a function of i
// and the node's stream, so that every device draws the same numbers, and every run of the plan draws them again. The stream is
// the attribute `seed`, or a hash of the node's name.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "frontends/onnx/ops/running.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

std::uint32_t stream_of(OpContext& c, bool whole_seed = false) {
  if (c.has("seed") && whole_seed) return static_cast<std::uint32_t>(c.integer("seed"));
  if (c.has("seed")) return std::bit_cast<std::uint32_t>(static_cast<float>(c.real("seed")));
  std::uint32_t hash = 2166136261u;
  for (const char letter : c.label()) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash;
}

Value* word(OpContext& c, std::uint32_t value) { return c.b.scalar(DType::u32, value); }

// 24 random bits k each, as (k + offset) / 2^24.
Value* fractions(OpContext& c, const Shape& shape, std::uint32_t stream, std::uint32_t step, double offset) {
  Value* index = c.b.iota({product(shape)}, 0, DType::u32);
  Value* bits = c.b.call("random_bits", {index, word(c, step), word(c, stream)});
  Value* k = c.b.cast(c.b.call("shift_right", {bits, word(c, 8)}), DType::f32);
  if (offset != 0) k = c.b.add(k, offset);
  return c.b.reshape(c.b.mul(k, 0x1p-24), shape);
}

Value* uniform_of(OpContext& c, const Shape& shape, std::uint32_t stream) { return fractions(c, shape, stream, 0, 0); }

// Box and Muller: sqrt(-2 log u) cos(2 pi v)
Value* normal_of(OpContext& c, const Shape& shape, std::uint32_t stream) {
  Value *u = fractions(c, shape, stream, 0, 0.5), *v = fractions(c, shape, stream, 1, 0);
  Value* radius = c.b.sqrt(c.b.mul(c.b.unary("log", u), -2));
  return c.b.mul(radius, c.b.unary("cos", c.b.mul(v, 2 * std::numbers::pi)));
}

Outputs drawn(OpContext& c, const Shape& shape, DType dtype) {
  if (!is_float(dtype)) c.fail("a floating-point type", std::string(name_of(dtype)));
  const bool normal = c.core() == "normal";
  const double low = c.real(normal ? "mean" : "low", 0.0), scale = c.real(normal ? "scale" : "high", 1.0) - (normal ? 0 : low);
  const std::uint32_t stream = stream_of(c);
  Value* x = normal ? normal_of(c, shape, stream) : uniform_of(c, shape, stream);
  return {c.b.cast(c.b.add(c.b.mul(x, scale), low), dtype)};
}

Outputs draw(OpContext& c) {
  const Ints sizes = c.integers("shape");
  for (const std::int64_t size : sizes) {
    if (size < 0) c.fail("dimensions of at least 0", fmt::format("{}", size));
  }
  return drawn(c, Shape(sizes.begin(), sizes.end()), c.dtype("dtype", DType::f32));
}

Outputs draw_like(OpContext& c) { return drawn(c, c.shape(0), c.dtype("dtype", c.input(0)->type.dtype)); }

Outputs bernoulli(OpContext& c) {
  Value* p = c.b.cast(c.input(0), DType::f32);
  const DType dtype = c.dtype("dtype", c.input(0)->type.dtype);
  return {c.b.cast(c.b.call("less", {uniform_of(c, p->type.shape, stream_of(c)), p}), dtype)};
}

// Classes drawn with the probabilities softmax(x[batch, classes]): as many as there are sums of probabilities up to u.
Outputs multinomial(OpContext& c) {
  Value* x = c.b.cast(c.input(0), DType::f32);
  const std::int64_t samples = c.integer("sample_size", 1);
  if (x->type.rank() != 2 || samples < 1) c.fail("x[batch, classes] and a positive sample_size", x->type.text());
  const Shape shape = x->type.shape;
  Value* sums = c.b.reshape(running(c.b, c.b.softmax(x, 1), {1}), {shape[0], Expr(1), shape[1]});
  Value* u = uniform_of(c, {shape[0], Expr(samples), Expr(1)}, stream_of(c));
  Value* passed = c.b.cast(c.b.call("less_equal", {sums, u}), DType::i64);
  Value* drawn_class = c.b.reduce("reduce_sum", passed, {2}, false);
  return {c.b.cast(c.b.min(drawn_class, c.b.exprs({shape[1] - 1}, {})), c.dtype("dtype", DType::i32))};
}

// x / (1 - ratio) where the mask is set, as a network computes it while it is trained elsewhere; layers that this compiler
// trains keep the operator.
Outputs random_dropout(OpContext& c) {
  c.ignore({"seed"});
  Value* x = c.input(0);
  const auto everything = [&] { return c.b.expand(c.b.scalar(DType::boolean, 1), x->type.shape); };
  const double ratio = c.optional_input(1) ? c.number(1, "ratio") : 0.5;
  if (!(ratio >= 0 && ratio < 1)) c.fail("a ratio of at least 0 and less than 1", fmt::format("{}", ratio));
  const bool off = !c.training() && (!c.optional_input(2) || c.number(2, "training_mode") == 0);
  if (off || ratio == 0) return {x, c.wants_output(1) ? everything() : nullptr};
  if (c.training()) {
    const Attributes attributes{{"ratio", ratio}};
    if (!c.wants_output(1)) return {c.b.call("dropout", {x}, attributes)};
    Value* factor = c.b.call("dropout", {c.b.expand(c.b.scalar(x->type.dtype, 1), x->type.shape)}, attributes);
    return {c.b.mul(x, factor), c.b.call("greater", {factor, c.b.scalar(x->type.dtype, 0)})};
  }
  Value* u = uniform_of(c, x->type.shape, stream_of(c, true));
  Value* kept = c.b.call("greater_equal", {u, c.b.scalar(DType::f32, ratio)});
  return {c.b.where(kept, c.b.mul(x, 1 / (1 - ratio)), c.b.scalar(x->type.dtype, 0)), kept};
}

constexpr OpRow kRandomRows[] = {
    {"Bernoulli", 15, 1, 1, bernoulli},
    {"Dropout", 12, 1, 3, random_dropout},
    {"Multinomial", 7, 1, 1, multinomial},
    {"RandomNormal", 1, 0, 0, draw, "normal"},
    {"RandomNormalLike", 1, 1, 1, draw_like, "normal"},
    {"RandomUniform", 1, 0, 0, draw, "uniform"},
    {"RandomUniformLike", 1, 1, 1, draw_like, "uniform"},
};

}  // namespace

std::span<const OpRow> random_rows() { return kRandomRows; }

}  // namespace oclc::onnx

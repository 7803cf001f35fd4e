// Normalisations.
#include <fmt/format.h>

#include <numeric>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// A vector of one number per channel, shaped to broadcast along axis 1 of a tensor with `rank` axes.
Value* per_channel(OpContext& c, Value* vector, std::size_t rank) {
  if (vector->type.rank() != 1) c.fail("one number per channel", vector->type.text());
  Shape shape{vector->type.shape[0]};
  for (std::size_t i = 2; i < rank; ++i) shape.emplace_back(1);
  return shape.size() == 1 ? vector : c.b.reshape(vector, std::move(shape));
}

Outputs batch_normalization(OpContext& c) {
  c.ignore({"spatial"});
  const double momentum = c.real("momentum", 0.9);
  Value* x = c.input(0);
  const DType dtype = x->type.dtype;
  if (x->type.rank() < 2) c.fail("an input of rank 2 or more", x->type.text());
  for (std::size_t i = 1; i <= 4; ++i) {
    if (c.rank(i) != 1 || !(c.shape(i)[0] == x->type.shape[1])) {
      c.fail(fmt::format("{} numbers as input {}", x->type.shape[1].text(), i), c.input(i)->type.text());
    }
  }
  Value *mean = c.input(3), *variance = c.input(4);
  if (c.training()) {
    c.ignore({"training_mode"});  // the entry point decides
    return {c.b.call("batch_norm", {x, c.input(1), c.input(2), mean, variance},
                     {{"epsilon", c.real("epsilon", 1e-5)}, {"momentum", momentum}})};
  }
  const DType of_statistics = mean->type.dtype;
  Outputs running;
  if (c.flag("training_mode")) {
    // Statistics of the batch, and what they make of the running ones.
    Ints axes{0};
    for (std::size_t i = 2; i < x->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    Value* wide = c.b.cast(x, of_statistics);
    Value* centre = c.b.reduce("reduce_mean", wide, axes, true);
    Value* apart = c.b.sub(wide, centre);
    Value* spread = c.b.reduce("reduce_mean", c.b.mul(apart, apart), axes, false);
    centre = c.b.reshape(centre, spread->type.shape);
    const auto next = [&](Value* old, Value* fresh) { return c.b.add(c.b.mul(old, momentum), c.b.mul(fresh, 1 - momentum)); };
    running = {next(mean, centre), next(variance, spread)};
    mean = centre;
    variance = spread;
  }
  Value *scale = c.b.cast(c.input(1), of_statistics), *bias = c.b.cast(c.input(2), of_statistics);
  Value* factor = c.b.div(scale, c.b.sqrt(c.b.add(variance, c.real("epsilon", 1e-5))));
  Value* shift = c.b.sub(bias, c.b.mul(mean, factor));
  Outputs out{c.b.fma(x, per_channel(c, c.b.cast(factor, dtype), x->type.rank()),
                      per_channel(c, c.b.cast(shift, dtype), x->type.rank()))};
  out.insert(out.end(), running.begin(), running.end());
  return out;
}

// (x - mean) / sqrt(variance + epsilon) over the last axis, without scale and bias.
Value* standardized(OpContext& c, Value* x, double epsilon) {
  const Expr size = x->type.shape.back();
  Value* ones = c.b.expand(c.b.scalar(x->type.dtype, 1), {size});
  return c.b.layer_norm(x, ones, nullptr, -1, epsilon);
}

// Each of `groups` groups of channels is normalised on its own.
Value* group_standardized(OpContext& c, const Expr& groups, double epsilon) {
  Value* x = c.input(0);
  const Shape shape = x->type.shape;
  if (shape.size() < 3) c.fail("an input of rank 3 or more", x->type.text());
  const Expr rest = floor_div(product(std::span(shape).subspan(1)), groups);
  Value* flat = c.b.reshape(x, {shape[0], groups, rest});
  return c.b.reshape(standardized(c, flat, epsilon), shape);
}

Outputs instance_normalization(OpContext& c) {
  const Shape& shape = c.shape(0);
  if (shape.size() < 3) c.fail("an input of rank 3 or more", c.input(0)->type.text());
  Value* y = group_standardized(c, shape[1], c.real("epsilon", 1e-5));
  return {c.b.fma(y, per_channel(c, c.input(1), shape.size()), per_channel(c, c.input(2), shape.size()))};
}

Outputs group_normalization(OpContext& c) {
  c.ignore({"stash_type"});
  const Shape& shape = c.shape(0);
  const std::int64_t groups = c.integer("num_groups");
  if (shape.size() < 3) c.fail("an input of rank 3 or more", c.input(0)->type.text());
  const bool divides = groups >= 1 && floor_div(shape[1], Expr(groups)) * Expr(groups) == shape[1];
  if (!divides) c.fail(fmt::format("a number of groups that divides {} channels", shape[1].text()), std::to_string(groups));
  Value* y = group_standardized(c, Expr(groups), c.real("epsilon", 1e-5));
  const auto of_channels = [&](std::size_t i) {
    Value* v = c.input(i);
    if (c.opset() >= 21) return v;
    // Before opset 21 there is one number per group.
    const Expr each = floor_div(shape[1], Expr(groups));
    return c.b.reshape(c.b.expand(c.b.reshape(v, {Expr(groups), Expr(1)}), {Expr(groups), each}), {shape[1]});
  };
  return {c.b.fma(y, per_channel(c, of_channels(1), shape.size()), per_channel(c, of_channels(2), shape.size()))};
}

Outputs layer_normalization(OpContext& c) {
  c.ignore({"stash_type"});
  Value* x = c.input(0);
  const std::size_t axis = c.axis_attribute(-1);
  const double epsilon = c.real("epsilon", 1e-5);
  const Shape normalized(x->type.shape.begin() + static_cast<std::ptrdiff_t>(axis), x->type.shape.end());
  const auto fitted = [&](Value* v) { return !v || v->type.shape == normalized ? v : c.b.expand(v, normalized); };
  Outputs out{c.b.layer_norm(x, fitted(c.input(1)), fitted(c.optional_input(2)), static_cast<std::int64_t>(axis), epsilon),
              nullptr, nullptr};
  if (!c.wants_output(1) && !c.wants_output(2)) return out;
  Ints axes(x->type.rank() - axis);
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(axis));
  Value* wide = c.b.cast(x, DType::f32);
  out[1] = c.b.reduce("reduce_mean", wide, axes, true);
  Value* apart = c.b.sub(wide, out[1]);
  out[2] = c.b.unary("rsqrt", c.b.add(c.b.reduce("reduce_mean", c.b.mul(apart, apart), axes, true), epsilon));
  return out;
}

Outputs mean_variance_normalization(OpContext& c) {
  Value* x = c.input(0);
  const std::vector<std::int64_t> axes = c.axes(c.integers("axes", Ints{0, 2, 3}), x->type.rank());
  Value* apart = c.b.sub(x, c.b.reduce("reduce_mean", x, axes, true));
  Value* variance = c.b.reduce("reduce_mean", c.b.mul(apart, apart), axes, true);
  return {c.b.div(apart, c.b.add(c.b.sqrt(variance), 1e-9))};
}

Outputs lp_normalization(OpContext& c) {
  Value* x = c.input(0);
  const auto axis = static_cast<std::int64_t>(c.axis_attribute(-1));
  const std::int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.fail("p of 1 or 2", std::to_string(p));
  Value* norm = p == 1 ? c.b.reduce("reduce_sum", c.b.unary("abs", x), {axis}, true)
                       : c.b.norm_root(c.b.reduce("reduce_sum", c.b.mul(x, x), {axis}, true), 2);
  Value* zero = c.b.scalar(x->type.dtype, 0);
  return {c.b.where(c.b.call("equal", {norm, zero}), zero, c.b.div(x, norm))};
}

// x / (bias + alpha / size * sum of the squares of `size` neighbouring channels)^beta
Outputs local_response_normalization(OpContext& c) {
  constexpr std::int64_t kLargest = 64;
  Value* x = c.input(0);
  const std::int64_t size = c.integer("size");
  if (x->type.rank() < 3) c.fail("an input of rank 3 or more", x->type.text());
  if (size < 1 || size > kLargest) c.fail(fmt::format("a size from 1 to {}", kLargest), std::to_string(size));
  const double alpha = c.real("alpha", 1e-4), beta = c.real("beta", 0.75), bias = c.real("bias", 1.0);
  std::vector<Expr> before(x->type.rank(), Expr(0)), after = before;
  before[1] = (size - 1) / 2;
  after[1] = size - 1 - (size - 1) / 2;
  Value* squares = c.b.pad(c.b.mul(x, x), before, after);
  Value* sum = nullptr;
  for (std::int64_t i = 0; i < size; ++i) {
    Value* shifted = c.b.slice_axis(squares, 1, Expr(i), x->type.shape[1]);
    sum = sum ? c.b.add(sum, shifted) : shifted;
  }
  Value* base = c.b.add(c.b.mul(sum, alpha / static_cast<double>(size)), bias);
  return {c.b.div(x, c.b.pow(base, c.b.scalar(x->type.dtype, beta)))};
}

constexpr OpRow kNormalizationRows[] = {
    {"BatchNormalization", 7, 5, 5, batch_normalization},
    {"GroupNormalization", 18, 3, 3, group_normalization},
    {"InstanceNormalization", 1, 3, 3, instance_normalization},
    {"LRN", 1, 1, 1, local_response_normalization},
    {"LayerNormalization", 17, 2, 3, layer_normalization},
    {"LpNormalization", 1, 1, 1, lp_normalization},
    {"MeanVarianceNormalization", 9, 1, 1, mean_variance_normalization},
};

}  // namespace

std::span<const OpRow> normalization_rows() { return kNormalizationRows; }

}  // namespace oclc::onnx

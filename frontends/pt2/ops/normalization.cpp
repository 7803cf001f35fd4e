// Normalisations and their gradients.
#include "frontends/pt2/gradient.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

Value* per_channel(AtenContext& c, Value* vector, std::size_t rank) {
  Shape shape{vector->type.elements()};
  for (std::size_t i = 2; i < rank; ++i) shape.emplace_back(1);
  return c.b.reshape(vector, std::move(shape));
}

// The value as result i has it; none where nobody wants it.
Value* as_result_of(AtenContext& c, std::size_t i, Value* x) {
  return c.wants(i) && x ? c.b.cast(x, c.result(i).dtype) : nullptr;
}

// Mean and 1 / sqrt(variance + epsilon) over the axes, which stay with size 1.
struct Moments {
  Value *mean, *inverse, *variance;
};

Moments moments_of(AtenContext& c, Value* x, const Ints& axes, double epsilon) {
  x = c.widened(x);
  Value* mean = c.b.reduce("reduce_mean", x, axes, true);
  Value* apart = c.b.sub(x, mean);
  Value* variance = c.b.reduce("reduce_mean", c.b.mul(apart, apart), axes, true);
  return {mean, c.b.unary("rsqrt", c.b.add(variance, epsilon)), variance};
}

Ints axes_from(std::size_t first, std::size_t rank) {
  Ints axes;
  for (std::size_t i = first; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

// ---- over the last axes

Value* layer_normalized(AtenContext& c, Value* x, Value* weight, Value* bias, std::size_t count, double epsilon) {
  const std::size_t first = x->type.rank() - count;
  const Shape normalized(x->type.shape.begin() + static_cast<std::ptrdiff_t>(first), x->type.shape.end());
  Value* scale = weight ? weight : c.b.expand(c.b.scalar(x->type.dtype, 1), normalized);
  return c.b.layer_norm(x, scale, bias, static_cast<std::int64_t>(first), epsilon);
}

std::size_t normalized_axes(AtenContext& c) { return c.sizes("normalized_shape").size(); }

Outputs layer_norm(AtenContext& c) {
  Value* x = c.tensor("input");
  const double epsilon = c.real("eps", 1e-5);
  const std::size_t count = normalized_axes(c);
  Outputs out{layer_normalized(c, x, c.optional_tensor("weight"), c.optional_tensor("bias"), count, epsilon), nullptr, nullptr};
  if (!c.wants(1) && !c.wants(2)) return out;
  const Moments m = moments_of(c, x, axes_from(x->type.rank() - count, x->type.rank()), epsilon);
  out[1] = as_result_of(c, 1, m.mean);
  out[2] = as_result_of(c, 2, m.inverse);
  return out;
}

// From mean and 1 / deviation, as the forward pass left them: x' = (x - mean) * inverse, and with d = g * weight
// dx = inverse * (d - mean(d) - x' * mean(d * x')).
struct Gradients {
  Value *x, *scaled;  // of x, and g * x'
};

Gradients standardized_backward(AtenContext& c, Value* x, Value* g, Value* d, Value* mean, Value* inverse, const Ints& axes) {
  Value* standard = c.b.mul(c.b.sub(x, mean), inverse);
  const auto average = [&](Value* v) { return c.b.reduce("reduce_mean", v, axes, true); };
  Value* dx = c.b.mul(inverse, c.b.sub(c.b.sub(d, average(d)), c.b.mul(standard, average(c.b.mul(d, standard)))));
  return {dx, c.b.mul(g, standard)};
}

Value* summed(AtenContext& c, Value* x, const Ints& axes) {
  return axes.empty() ? x : c.b.reduce("reduce_sum", x, axes, false);
}

Outputs layer_norm_backward(AtenContext& c) {
  Value *g = c.widened(c.tensor("grad_out")), *x = c.widened(c.tensor("input")), *weight = c.optional_tensor("weight");
  const std::size_t rank = x->type.rank(), first = rank - normalized_axes(c);
  Value* d = weight ? c.b.mul(g, c.b.cast(weight, g->type.dtype)) : g;
  const Gradients r =
      standardized_backward(c, x, g, d, c.widened(c.tensor("mean")), c.widened(c.tensor("rstd")), axes_from(first, rank));
  Ints outer = axes_from(0, first);
  return {as_result_of(c, 0, r.x), weight ? as_result_of(c, 1, summed(c, r.scaled, outer)) : nullptr,
          c.has("bias") ? as_result_of(c, 2, summed(c, g, outer)) : nullptr};
}

Outputs rms_norm(AtenContext& c) {
  Value *x = c.tensor("input"), *weight = c.optional_tensor("weight");
  const std::size_t first = x->type.rank() - normalized_axes(c);
  const Shape normalized(x->type.shape.begin() + static_cast<std::ptrdiff_t>(first), x->type.shape.end());
  const double epsilon = c.real("eps", x->type.dtype == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07);
  Value* scale = weight ? weight : c.b.expand(c.b.scalar(x->type.dtype, 1), normalized);
  Outputs out{c.b.rms_norm(x, scale, static_cast<std::int64_t>(first), epsilon), nullptr};
  if (!c.wants(1)) return out;
  Value* wide = c.widened(x);
  Value* square = c.b.reduce("reduce_mean", c.b.mul(wide, wide), axes_from(first, x->type.rank()), true);
  out[1] = as_result_of(c, 1, c.b.unary("rsqrt", c.b.add(square, epsilon)));
  return out;
}

// ---- over groups of channels

Value* grouped(AtenContext& c, Value* x, std::int64_t groups) {
  const Shape& s = x->type.shape;
  const Expr rest = floor_div(product(std::span<const Expr>(s).subspan(1)), Expr(groups));
  return c.b.reshape(x, {s[0], Expr(groups), rest});
}

Value* group_normalized(AtenContext& c, Value* x, Value* weight, Value* bias, std::int64_t groups, double epsilon) {
  const Shape shape = x->type.shape;
  Value* y = c.b.reshape(layer_normalized(c, grouped(c, x, groups), nullptr, nullptr, 1, epsilon), shape);
  if (weight) y = c.b.mul(y, per_channel(c, weight, shape.size()));
  return bias ? c.b.add(y, per_channel(c, bias, shape.size())) : y;
}

Outputs group_norm(AtenContext& c) {
  Value* x = c.tensor("input");
  const bool whole = c.core() == "whole";
  const std::int64_t groups = c.integer(whole ? "num_groups" : "group");
  const double epsilon = c.real("eps", 1e-5);
  Outputs out{group_normalized(c, x, c.optional_tensor("weight"), c.optional_tensor("bias"), groups, epsilon), nullptr,
              nullptr};
  if (!c.wants(1) && !c.wants(2)) return out;
  const Moments m = moments_of(c, grouped(c, x, groups), {2}, epsilon);
  if (c.wants(1)) out[1] = as_result_of(c, 1, c.b.reshape(m.mean, c.result(1).shape));
  if (c.wants(2)) out[2] = as_result_of(c, 2, c.b.reshape(m.inverse, c.result(2).shape));
  return out;
}

Outputs group_norm_backward(AtenContext& c) {
  Value *g = c.widened(c.tensor("grad_out")), *x = c.widened(c.tensor("input")), *weight = c.optional_tensor("weight");
  const std::int64_t groups = c.integer("group");
  const Shape shape = x->type.shape;
  Value* d = weight ? c.b.mul(g, per_channel(c, c.b.cast(weight, g->type.dtype), shape.size())) : g;
  const auto statistic = [&](const char* name) {
    return c.b.reshape(c.widened(c.tensor(name)), {shape[0], Expr(groups), Expr(1)});
  };
  const Gradients r = standardized_backward(c, grouped(c, x, groups), grouped(c, g, groups), grouped(c, d, groups),
                                            statistic("mean"), statistic("rstd"), {2});
  Ints outer{0};
  for (std::size_t i = 2; i < shape.size(); ++i) outer.push_back(static_cast<std::int64_t>(i));
  return {as_result_of(c, 0, c.b.reshape(r.x, shape)), as_result_of(c, 1, summed(c, c.b.reshape(r.scaled, shape), outer)),
          as_result_of(c, 2, summed(c, g, outer))};
}

// ---- over the batch

struct Batch {
  Value *x, *weight, *bias, *mean, *variance;
  double momentum, epsilon;
};

Batch batch_of(AtenContext& c) {
  Batch n{c.tensor("input"),
          c.optional_tensor("weight"),
          c.optional_tensor("bias"),
          c.optional_tensor("running_mean"),
          c.optional_tensor("running_var"),
          c.real("momentum", 0.1),
          c.real("eps", 1e-5)};
  const Expr& channels = n.x->type.shape.at(1);
  const DType dtype = n.x->type.dtype;
  if (!n.weight) n.weight = c.b.expand(c.b.scalar(dtype, 1), {channels});
  if (!n.bias) n.bias = c.b.expand(c.b.scalar(dtype, 0), {channels});
  return n;
}

Value* with_statistics(AtenContext& c, const Batch& n, Value* mean, Value* inverse) {
  const std::size_t rank = n.x->type.rank();
  const DType dtype = n.x->type.dtype;
  Value* factor = c.b.mul(c.b.cast(n.weight, inverse->type.dtype), inverse);
  mean = c.b.cast(mean, inverse->type.dtype);
  Value* shift = c.b.sub(c.b.cast(n.bias, inverse->type.dtype), c.b.mul(mean, factor));
  Value* x = c.b.cast(n.x, inverse->type.dtype);
  return c.b.cast(c.b.fma(x, per_channel(c, factor, rank), per_channel(c, shift, rank)), dtype);
}

Value* frozen(AtenContext& c, const Batch& n) {
  return with_statistics(c, n, c.widened(n.mean), c.b.unary("rsqrt", c.b.add(c.widened(n.variance), n.epsilon)));
}

Ints all_but_channels(std::size_t rank) {
  Ints axes = axes_from(1, rank);
  axes[0] = 0;
  for (std::size_t i = 2; i < rank; ++i) axes[i - 1] = static_cast<std::int64_t>(i);
  return axes;
}

Value* without_elements(AtenContext& c, std::size_t i) {
  return c.wants(i) ? c.b.constant(HostTensor(c.result(i).dtype, {0})) : nullptr;
}

Outputs frozen_batch_norm(AtenContext& c) {
  const Batch n = batch_of(c);
  return {frozen(c, n), without_elements(c, 1), without_elements(c, 2)};
}

// result, mean of the batch, 1 / its deviation, and the new running statistics if there are any.
Outputs training_batch_norm(AtenContext& c) {
  const Batch n = batch_of(c);
  if (!c.flag("training", true)) {
    return {frozen(c, n), without_elements(c, 1), without_elements(c, 2), n.mean, n.variance};
  }
  const std::size_t rank = n.x->type.rank();
  const Ints axes = all_but_channels(rank);
  const Shape channels{n.x->type.shape[1]};
  const Moments m = moments_of(c, n.x, axes, n.epsilon);
  Value *mean = c.b.reshape(m.mean, channels), *inverse = c.b.reshape(m.inverse, channels);
  Outputs out{with_statistics(c, n, mean, inverse), as_result_of(c, 1, mean), as_result_of(c, 2, inverse)};
  if (!n.mean || !n.variance) return out;
  Expr count = 1;
  for (const std::int64_t a : axes) count *= n.x->type.shape[static_cast<std::size_t>(a)];
  // torch may have them in single precision where the running ones are in half: it writes them back itself.
  Value* elements = c.b.cast(c.b.exprs({count}, {}), m.variance->type.dtype);
  Value* unbiased = c.b.mul(c.b.reshape(m.variance, channels),
                            c.b.div(elements, c.b.max(c.b.add(elements, -1), c.b.scalar(elements->type.dtype, 1))));
  const auto next = [&](std::size_t i, Value* old, Value* fresh) {
    Value* value = c.b.add(c.b.mul(c.b.cast(old, fresh->type.dtype), 1 - n.momentum), c.b.mul(fresh, n.momentum));
    out.push_back(as_result_of(c, i, value));
  };
  next(3, n.mean, mean);
  next(4, n.variance, unbiased);
  return out;
}

// With running statistics, training writes them, which a program that is read here does by other operators.
Outputs native_batch_norm(AtenContext& c) {
  if (c.flag("training") && (c.optional_tensor("running_mean") || c.optional_tensor("running_var")))
    c.refuse("native_batch_norm that writes no running statistics", "training with them",
             "torch.nn.functional.batch_norm does");
  Outputs out = training_batch_norm(c);
  out.resize(3);
  return out;
}

// torch.export's: the entry point decides whether it trains.
Outputs batch_norm(AtenContext& c) {
  const Batch n = batch_of(c);
  if (c.training() && n.mean && n.variance)
    return {c.b.call("batch_norm", {n.x, n.weight, n.bias, n.mean, n.variance},
                     {{"epsilon", n.epsilon}, {"momentum", 1 - n.momentum}})};
  if (!c.flag("training")) return {frozen(c, n)};
  return {training_batch_norm(c)[0]};
}

Outputs batch_norm_backward(AtenContext& c) {
  Value *g = c.widened(c.tensor("grad_out")), *x = c.widened(c.tensor("input")), *weight = c.optional_tensor("weight");
  const std::size_t rank = x->type.rank();
  const Ints axes = all_but_channels(rank);
  const auto channels = [&](const char* name) { return per_channel(c, c.widened(c.tensor(name)), rank); };
  Value* d = weight ? c.b.mul(g, per_channel(c, c.b.cast(weight, g->type.dtype), rank)) : g;
  Gradients r{};
  if (c.flag("train")) {
    r = standardized_backward(c, x, g, d, channels("save_mean"), channels("save_invstd"), axes);
  } else {
    Value* inverse = c.b.unary("rsqrt", c.b.add(channels("running_var"), c.real("eps")));
    r = {c.b.mul(d, inverse), c.b.mul(g, c.b.mul(c.b.sub(x, channels("running_mean")), inverse))};
  }
  return {as_result_of(c, 0, r.x), as_result_of(c, 1, summed(c, r.scaled, axes)), as_result_of(c, 2, summed(c, g, axes))};
}

Outputs instance_norm(AtenContext& c) {
  Value* x = c.tensor("input");
  if (!c.flag("use_input_stats", true)) c.refuse("instance normalisation by the input's statistics", "running ones");
  const Expr& channels = x->type.shape.at(1);
  if (!channels.is_constant()) c.refuse("a known number of channels", x->type.text());
  return {
      group_normalized(c, x, c.optional_tensor("weight"), c.optional_tensor("bias"), channels.value(), c.real("eps", 1e-5))};
}

constexpr OpRow kNormalizationRows[] = {
    {"aten.layer_norm.default", layer_norm},
    {"aten.native_layer_norm.default", layer_norm},
    {"aten.native_layer_norm_backward.default", layer_norm_backward},
    {"aten.rms_norm.default", rms_norm},
    {"aten._fused_rms_norm.default", rms_norm},
    {"aten.group_norm.default", group_norm, "whole"},
    {"aten.native_group_norm.default", group_norm},
    {"aten.native_group_norm_backward.default", group_norm_backward},
    {"aten.instance_norm.default", instance_norm},
    {"aten.batch_norm.default", batch_norm},
    {"aten.native_batch_norm.default", native_batch_norm},
    {"aten._native_batch_norm_legit_no_training.default", frozen_batch_norm},
    {"aten._native_batch_norm_legit_functional.default", training_batch_norm},
    {"aten._native_batch_norm_legit.no_stats", training_batch_norm},
    {"aten.native_batch_norm_backward.default", batch_norm_backward},
};

}  // namespace

std::span<const OpRow> normalization_rows() { return kNormalizationRows; }

}  // namespace oclc::pt2

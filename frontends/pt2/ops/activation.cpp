// Activations and softmax, with their gradients.
#include <cmath>
#include <limits>
#include <numbers>

#include "frontends/pt2/gradient.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

Value* like(AtenContext& c, const Value* x, double value) { return c.b.scalar(x->type.dtype, value); }

Value* gelu_of(AtenContext& c, Value* x) {
  return onnx_call(c, "Gelu", {x}, {{"approximate", c.text("approximate", "none")}})[0];
}

Outputs gelu(AtenContext& c) { return {gelu_of(c, c.tensor("self"))}; }

Outputs gelu_backward(AtenContext& c) {
  return gradients_of(c, {c.tensor("self")}, c.tensor("grad_output"),
                      [&](const std::vector<Value*>& own) { return gelu_of(c, own[0]); });
}

Value* silu_of(AtenContext& c, Value* x) { return c.b.mul(x, c.b.sigmoid(x)); }

Outputs silu(AtenContext& c) { return {silu_of(c, c.tensor("self"))}; }

Outputs silu_backward(AtenContext& c) {
  return gradients_of(c, {c.tensor("self")}, c.tensor("grad_output"),
                      [&](const std::vector<Value*>& own) { return silu_of(c, own[0]); });
}

Outputs by_onnx(AtenContext& c) { return onnx_call(c, c.core(), {c.tensor("self")}); }

Outputs leaky_relu(AtenContext& c) {
  Value* x = c.tensor("self");
  return {c.b.where(c.b.call("greater", {x, like(c, x, 0)}), x, c.b.mul(x, c.real("negative_slope", 0.01)))};
}

Outputs prelu(AtenContext& c) {
  Value *x = c.tensor("self"), *slope = c.tensor("weight");
  Shape shape;
  if (x->type.rank() > 0) shape.push_back(slope->type.elements());
  for (std::size_t i = 2; i < x->type.rank(); ++i) shape.emplace_back(1);
  return {c.b.where(c.b.call("greater", {x, like(c, x, 0)}), x, c.b.mul(x, c.b.reshape(slope, shape)))};
}

// scale * (x > 0 ? x : alpha * (e^(x * input_scale) - 1))
Value* elu_of(AtenContext& c, double alpha, double scale, double input_scale) {
  Value* x = c.tensor("self");
  Value* t = c.b.tanh(c.b.mul(c.b.min(x, like(c, x, 0)), 0.5 * input_scale));
  Value* low = c.b.div(c.b.mul(t, 2 * alpha), c.b.sub(like(c, t, 1), t));
  Value* y = c.b.where(c.b.call("greater", {x, like(c, x, 0)}), x, low);
  return scale == 1 ? y : c.b.mul(y, scale);
}

Outputs elu(AtenContext& c) { return {elu_of(c, c.real("alpha", 1), c.real("scale", 1), c.real("input_scale", 1))}; }

Outputs celu(AtenContext& c) { return {elu_of(c, c.real("alpha", 1), 1, 1 / c.real("alpha", 1))}; }

// G. Klambauer et al., Self-Normalizing Neural Networks, 2017.
Outputs selu(AtenContext& c) { return {elu_of(c, 1.6732632423543772, 1.0507009873554805, 1)}; }

Outputs hardtanh(AtenContext& c) {
  Value* x = c.tensor("self");
  const bool six = c.core() == "six";
  const double low = six ? 0 : c.real("min_val", -1), high = six ? 6 : c.real("max_val", 1);
  return {c.b.min(c.b.max(x, like(c, x, low)), like(c, x, high))};
}

Outputs hardsigmoid(AtenContext& c) {
  Value* x = c.tensor("self");
  Value* y = c.b.min(c.b.max(c.b.add(x, 3), like(c, x, 0)), like(c, x, 6));
  return {c.b.div(y, like(c, x, 6))};
}

// log(1 + e^(beta x)) / beta, and x beyond the threshold.
Outputs softplus(AtenContext& c) {
  Value* x = c.tensor("self");
  const double beta = c.real("beta", 1), threshold = c.real("threshold", 20);
  Value* scaled = beta == 1 ? x : c.b.mul(x, beta);
  Value* y = c.b.unary("softplus", scaled);
  if (beta != 1) y = c.b.mul(y, 1 / beta);
  return {c.b.where(c.b.call("greater", {scaled, like(c, x, threshold)}), x, y)};
}

Outputs log_sigmoid(AtenContext& c) {
  Value* x = c.tensor("self");
  Value* y = c.b.unary("neg", c.b.unary("softplus", c.b.unary("neg", x)));
  return {y, c.wants(1) ? c.b.exp(c.b.unary("neg", c.b.unary("abs", x))) : nullptr};
}

Outputs threshold(AtenContext& c) {
  Value* x = c.tensor("self");
  return {c.b.where(c.b.call("greater", {x, c.operand("threshold", x->type.dtype)}), x, c.operand("value", x->type.dtype))};
}

Outputs threshold_backward(AtenContext& c) {
  Value *x = c.tensor("self"), *g = c.tensor("grad_output");
  return {c.b.where(c.b.call("greater", {x, c.operand("threshold", x->type.dtype)}), g, like(c, g, 0))};
}

Outputs hardtanh_backward(AtenContext& c) {
  Value *x = c.tensor("self"), *g = c.tensor("grad_output");
  Value* inside = c.b.call(
      "and", {c.b.call("greater", {x, like(c, x, c.real("min_val"))}), c.b.call("less", {x, like(c, x, c.real("max_val"))})});
  return {c.b.where(inside, g, like(c, g, 0))};
}

Outputs softmax(AtenContext& c) {
  Value* x = c.b.cast(c.tensor("self"), c.result().dtype);
  if (x->type.rank() == 0) return {c.core() == "softmax" ? c.b.add(c.b.mul(x, 0.0), 1.0) : c.b.mul(x, 0.0)};
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  return {c.core() == "softmax" ? c.b.softmax(x, axis) : c.b.log_softmax(x, axis)};
}

// Rows that are masked out whole give 0.
Outputs safe_softmax(AtenContext& c) {
  Value* x = c.b.cast(c.tensor("self"), c.result().dtype);
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  Value* dead =
      c.b.call("equal", {c.b.reduce("reduce_max", x, {axis}, true), like(c, x, -std::numeric_limits<double>::infinity())});
  return {c.b.where(dead, like(c, x, 0), c.b.softmax(x, axis))};
}

// y * (g - sum(g * y)), and of the logarithm g - e^y * sum(g).
Outputs softmax_backward(AtenContext& c) {
  Value *g = c.widened(c.tensor("grad_output")), *y = c.widened(c.tensor("output"));
  if (y->type.rank() == 0) return {c.b.cast(c.b.mul(g, 0.0), c.result().dtype)};
  const std::int64_t axis = c.axis(c.integer("dim"), y->type.rank());
  const auto sum = [&](Value* x) { return c.b.reduce("reduce_sum", x, {axis}, true); };
  Value* result = c.core() == "softmax" ? c.b.mul(y, c.b.sub(g, sum(c.b.mul(g, y)))) : c.b.sub(g, c.b.mul(c.b.exp(y), sum(g)));
  return {c.b.cast(result, c.result().dtype)};
}

Outputs sigmoid_backward(AtenContext& c) {
  Value *g = c.tensor("grad_output"), *y = c.tensor("output");
  Value* slope = c.core() == "sigmoid" ? c.b.mul(y, c.b.sub(like(c, y, 1), y)) : c.b.sub(like(c, y, 1), c.b.mul(y, y));
  return {c.b.mul(g, slope)};
}

constexpr OpRow kActivationRows[] = {
    {"aten.gelu.default", gelu},
    {"aten.gelu_backward.default", gelu_backward},
    {"aten.silu.default", silu},
    {"aten.silu_backward.default", silu_backward},
    {"aten.mish.default", by_onnx, "Mish"},
    {"aten.hardswish.default", by_onnx, "HardSwish"},
    {"aten.hardsigmoid.default", hardsigmoid},
    {"aten.leaky_relu.default", leaky_relu},
    {"aten.prelu.default", prelu},
    {"aten._prelu_kernel.default", prelu},
    {"aten.elu.default", elu},
    {"aten.celu.default", celu},
    {"aten.selu.default", selu},
    {"aten.hardtanh.default", hardtanh},
    {"aten.relu6.default", hardtanh, "six"},
    {"aten.hardtanh_backward.default", hardtanh_backward},
    {"aten.softplus.default", softplus},
    {"aten.log_sigmoid.default", log_sigmoid},
    {"aten.log_sigmoid_forward.default", log_sigmoid},
    {"aten.threshold.default", threshold},
    {"aten.threshold_backward.default", threshold_backward},
    {"aten._softmax.default", softmax, "softmax"},
    {"aten.softmax.int", softmax, "softmax"},
    {"aten._log_softmax.default", softmax, "log_softmax"},
    {"aten.log_softmax.int", softmax, "log_softmax"},
    {"aten._safe_softmax.default", safe_softmax},
    {"aten._softmax_backward_data.default", softmax_backward, "softmax"},
    {"aten._log_softmax_backward_data.default", softmax_backward, "log_softmax"},
    {"aten.sigmoid_backward.default", sigmoid_backward, "sigmoid"},
    {"aten.tanh_backward.default", sigmoid_backward, "tanh"},
};

}  // namespace

std::span<const OpRow> activation_rows() { return kActivationRows; }

}  // namespace oclc::pt2

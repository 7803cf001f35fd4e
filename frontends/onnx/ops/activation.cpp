// Activations, decomposed into the core operators, and softmax.
#include <cmath>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Outputs plain(OpContext& c) { return {c.b.unary(c.core(), c.input(0))}; }

Value* number_like(OpContext& c, double value) { return c.b.scalar(c.input(0)->type.dtype, value); }

// alpha * (e^(min(x, 0) / inside) - 1). With t = tanh(a / 2), e^a - 1 = 2 t / (1 - t), which keeps its digits near 0.
Value* exponential_part(OpContext& c, double alpha, double inside) {
  Value* t = c.b.unary("tanh", c.b.mul(c.b.min(c.input(0), number_like(c, 0)), 0.5 / inside));
  return c.b.div(c.b.mul(t, 2 * alpha), c.b.add(c.b.mul(t, -1), 1));
}

Outputs elu(OpContext& c) { return {c.b.add(c.b.relu(c.input(0)), exponential_part(c, c.real("alpha", 1.0), 1))}; }

Outputs celu(OpContext& c) {
  const double alpha = c.real("alpha", 1.0);
  if (alpha == 0) c.fail("an alpha other than 0", "0");
  return {c.b.add(c.b.relu(c.input(0)), exponential_part(c, alpha, alpha))};
}

Outputs selu(OpContext& c) {
  const bool old = c.opset() < 6;
  const double alpha = c.real("alpha", old ? 1.6732 : 1.67326319217681884765625),
               gamma = c.real("gamma", old ? 1.0507 : 1.05070102214813232421875);
  return {c.b.mul(c.b.add(c.b.relu(c.input(0)), exponential_part(c, alpha, 1)), gamma)};
}

Outputs leaky_relu(OpContext& c) {
  Value* x = c.input(0);
  return {c.b.where(c.b.call("less", {x, number_like(c, 0)}), c.b.mul(x, c.real("alpha", 0.01)), x)};
}

Outputs prelu(OpContext& c) {
  Value *x = c.input(0), *slope = c.input(1);
  return {c.b.where(c.b.call("less", {x, number_like(c, 0)}), c.b.mul(x, slope), x)};
}

Outputs thresholded_relu(OpContext& c) {
  Value* x = c.input(0);
  return {c.b.where(c.b.call("greater", {x, number_like(c, c.real("alpha", 1.0))}), x, number_like(c, 0))};
}

Value* between(OpContext& c, Value* x, double low, double high) {
  return c.b.max(c.b.min(x, number_like(c, high)), number_like(c, low));
}

Outputs hard_sigmoid(OpContext& c) {
  return {between(c, c.b.add(c.b.mul(c.input(0), c.real("alpha", 0.2)), c.real("beta", 0.5)), 0, 1)};
}

// x * max(0, min(1, x / 6 + 1 / 2)), by numbers that every type of floats has: a sixth is none of them, and near -3, where the
// function is 0, its error would be all that is left.
Outputs hard_swish(OpContext& c) {
  Value* x = c.input(0);
  return {c.b.mul(x, c.b.div(between(c, c.b.add(x, 3.0), 0, 6), number_like(c, 6)))};
}

Outputs gelu(OpContext& c) {
  Value* x = c.input(0);
  const std::string approximate = c.text("approximate", "none");
  Value* inner = nullptr;
  if (approximate == "none") {
    inner = c.b.erf(c.b.mul(x, std::sqrt(0.5)));
  } else if (approximate == "tanh") {
    constexpr double kTwoOverPi = 0.63661977236758134308;
    Value* cube = c.b.mul(c.b.mul(x, x), x);
    inner = c.b.tanh(c.b.mul(c.b.add(x, c.b.mul(cube, 0.044715)), std::sqrt(kTwoOverPi)));
  } else {
    c.fail("attribute 'approximate' as none or tanh", printable(approximate));
  }
  return {c.b.mul(c.b.mul(x, 0.5), c.b.add(inner, 1))};
}

Outputs mish(OpContext& c) { return {c.b.mul(c.input(0), c.b.tanh(c.b.unary("softplus", c.input(0))))}; }

// x * sigmoid(alpha * x), of SwiGLU times its other operand.
Outputs swish(OpContext& c) {
  const double alpha = c.real("alpha", 1.0);
  Value* x = c.input(0);
  Value* y = c.b.mul(x, c.b.sigmoid(alpha == 1 ? x : c.b.mul(x, alpha)));
  if (c.inputs() == 1) return {y};
  if (!(c.input(1)->type == x->type)) c.fail("two operands of one type", c.input(1)->type.text());
  return {c.b.mul(y, c.input(1))};
}

Outputs softsign(OpContext& c) {
  Value* x = c.input(0);
  return {c.b.div(x, c.b.add(c.b.unary("abs", x), 1))};
}

Outputs shrink(OpContext& c) {
  Value* x = c.input(0);
  const double bias = c.real("bias", 0.0), lambda = c.real("lambd", 0.5);
  Value* high = c.b.where(c.b.call("greater", {x, number_like(c, lambda)}), c.b.add(x, -bias), number_like(c, 0));
  return {c.b.where(c.b.call("less", {x, number_like(c, -lambda)}), c.b.add(x, bias), high)};
}

// Before opset 13 the axes from `axis` on count as one.
Outputs softmax_flat(OpContext& c) {
  Value* x = c.input(0);
  const std::size_t axis = c.axis_attribute(1);
  if (axis + 1 == x->type.rank()) return {c.b.call(c.core(), {x}, {{"axis", static_cast<std::int64_t>(axis)}})};
  const Shape& shape = x->type.shape;
  const std::span<const Expr> all(shape);
  Value* flat = c.b.reshape(x, {product(all.first(axis)), product(all.subspan(axis))});
  return {c.b.reshape(c.b.call(c.core(), {flat}, {{"axis", std::int64_t{1}}}), shape)};
}

Outputs softmax(OpContext& c) {
  return {c.b.call(c.core(), {c.input(0)}, {{"axis", static_cast<std::int64_t>(c.axis_attribute(-1))}})};
}

Outputs hardmax(OpContext& c) {
  Value* x = c.input(0);
  const std::size_t axis = c.axis_attribute(-1);
  if (x->type.elements() == Expr(0)) return {c.b.cast(c.b.call("equal", {x, x}), x->type.dtype)};
  Value* best = c.b.arg("argmax", x, static_cast<std::int64_t>(axis), true);
  Shape ramp(x->type.rank(), Expr(1));
  ramp[axis] = x->type.shape[axis];
  return {c.b.cast(c.b.call("equal", {c.b.iota(ramp, static_cast<std::int64_t>(axis), DType::i64), best}), x->type.dtype)};
}

constexpr OpRow kActivationRows[] = {
    {"Relu", 1, 1, 1, plain, "relu"},
    {"Sigmoid", 1, 1, 1, plain, "sigmoid"},
    {"Softplus", 1, 1, 1, plain, "softplus"},
    {"Tanh", 1, 1, 1, plain, "tanh"},
    {"Celu", 12, 1, 1, celu},
    {"Elu", 1, 1, 1, elu},
    {"com.microsoft.Gelu", 1, 1, 1, gelu},
    {"Gelu", 20, 1, 1, gelu},
    {"HardSigmoid", 1, 1, 1, hard_sigmoid},
    {"HardSwish", 14, 1, 1, hard_swish},
    {"LeakyRelu", 1, 1, 1, leaky_relu},
    {"Mish", 18, 1, 1, mish},
    {"PRelu", 7, 2, 2, prelu},
    {"Selu", 1, 1, 1, selu},
    {"Shrink", 9, 1, 1, shrink},
    {"Softsign", 1, 1, 1, softsign},
    {"SwiGLU", 28, 2, 2, swish},
    {"Swish", 24, 1, 1, swish},
    {"ThresholdedRelu", 10, 1, 1, thresholded_relu},
    {"Hardmax", 13, 1, 1, hardmax},
    {"LogSoftmax", 1, 1, 1, softmax_flat, "log_softmax"},
    {"LogSoftmax", 13, 1, 1, softmax, "log_softmax"},
    {"Softmax", 1, 1, 1, softmax_flat, "softmax"},
    {"Softmax", 13, 1, 1, softmax, "softmax"},
};

}  // namespace

std::span<const OpRow> activation_rows() { return kActivationRows; }

}  // namespace oclc::onnx

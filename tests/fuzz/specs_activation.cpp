// Activations, softmax, normalisation.
#include <algorithm>

#include "tests/fuzz/specs.h"

namespace oclc::fuzz {
namespace {

void alpha(Draft& d, std::string_view name, double low, double high) {
  if (d.r.chance(0.5)) d.set(name, d.r.real(low, high));
}

void plain(Draft& d) {
  if (d.node.op_type() == "Relu") d.effect = Effect::moves;
  d.input(d.node.op_type() == "Relu" && d.opset >= 14 && d.r.chance(0.2)
              ? d.type({DType::i8, DType::i16, DType::i32, DType::i64})
              : d.floats(),
          d.shape(), {-4, 4, false, d.r.chance(0.3)});
}

void one_parameter(Draft& d) {
  const std::string& op = d.node.op_type();
  if (op == "ThresholdedRelu" || op == "Shrink") d.effect = Effect::decides;
  d.input(d.floats(), d.shape(), {-4, 4});
  if (op == "Celu" || op == "Elu" || op == "ThresholdedRelu" || op == "LeakyRelu" || op == "Selu" || op == "HardSigmoid")
    alpha(d, "alpha", 0.2, 1.5);
  if (op == "Selu") alpha(d, "gamma", 0.5, 1.5);
  if (op == "HardSigmoid") {
    d.scale = 1;  // beta, which a rounded product with alpha may all but cancel
    alpha(d, "beta", 0.1, 0.8);
  }
  if (op == "Shrink") {
    alpha(d, "bias", 0, 1);
    alpha(d, "lambd", 0, 1);
  }
  if (op == "Gelu") {
    d.scale = 4;  // far below 0 the reference rounds 1 + erf, or 1 + tanh, of a value near -1, and multiplies by x
    if (d.r.chance(0.6)) d.set("approximate", d.r.pick({"none", "tanh"}));
  }
}

void prelu(Draft& d) {
  const DType dtype = d.floats();
  const Dims shape = d.shape(1);
  d.input(dtype, shape);
  d.input(dtype, d.broadcast(shape));
}

void softmax(Draft& d) {
  const Dims shape = d.shape(1);
  if (d.node.op_type() == "Hardmax") d.effect = Effect::decides;
  d.input(d.floats(), shape, {-6, 6});
  d.tolerance = d.node.op_type() == "LogSoftmax" ? 2 : 1;
  if (d.r.chance(0.8))
    d.set("axis", d.opset >= 11 ? d.spelled(d.axis(shape.size()), shape.size()) : d.axis(shape.size()));
  else if (d.opset < 13 && shape.size() < 2)
    d.set("axis", 0);
}

Dims with_channels(Draft& d, std::size_t least_rank) {
  Dims shape = d.shape(least_rank, 5);
  for (std::int64_t& dim : shape) dim = std::max<std::int64_t>(dim, 1);
  return shape;
}

void batch_normalization(Draft& d) {
  const DType dtype = d.r.chance(0.9) ? DType::f32 : DType::f64;
  const Dims shape = with_channels(d, 2);
  d.tolerance = 4;
  d.scale = 4;
  d.input(dtype, shape);
  for (int i = 0; i < 3; ++i) d.input(dtype, {shape[1]});
  d.input(dtype, {shape[1]}, {0.2, 2, true});
  if (d.r.chance(0.4)) d.set("epsilon", d.r.real(1e-4, 1e-2));
}

// Size of what the mean is taken from: of equal numbers nothing remains but the rounding of that difference.
constexpr double kCentred = 1;

void instance_normalization(Draft& d) {
  Dims shape = with_channels(d, 3);
  d.tolerance = 64;  // of nearly equal numbers the variance is small
  d.scale = kCentred;
  d.input(DType::f32, shape);
  d.input(DType::f32, {shape[1]});
  d.input(DType::f32, {shape[1]});
  d.set("epsilon", d.r.real(1e-2, 1e-1));
}

void group_normalization(Draft& d) {
  Dims shape = with_channels(d, 3);
  const std::int64_t groups = d.r.integer(1, 3);
  shape[1] = groups * d.r.integer(1, 3);
  d.tolerance = 64;
  d.scale = kCentred;
  d.input(DType::f32, shape);
  const Dims each{d.opset >= 21 ? shape[1] : groups};
  d.input(DType::f32, each);
  d.input(DType::f32, each);
  d.set("num_groups", groups);
  d.set("epsilon", d.r.real(1e-2, 1e-1));
}

void layer_normalization(Draft& d) {
  const Dims shape = with_channels(d, 1);
  const auto rank = shape.size();
  const std::int64_t axis = d.axis(rank);
  const Dims inner(shape.begin() + axis, shape.end());
  d.tolerance = 64;
  d.input(DType::f32, shape);
  d.input(DType::f32, inner);
  if (d.node.op_type() == "LayerNormalization") {
    d.scale = kCentred;
    if (d.r.chance(0.6)) d.input(DType::f32, inner);
    d.outputs = static_cast<int>(d.r.pick({1, 1, 3}));
  }
  d.set("axis", d.spelled(axis, rank));
  d.set("epsilon", d.r.real(1e-2, 1e-1));
}

void lp_normalization(Draft& d) {
  const Dims shape = with_channels(d, 1);
  d.input(d.type({DType::f32, DType::f64}), shape, {0.25, 2, true});
  d.set("axis", d.spelled(d.axis(shape.size()), shape.size()));
  d.set("p", d.r.integer(1, 2));
}

void mean_variance(Draft& d) {
  const Dims shape = with_channels(d, 4);
  d.tolerance = 256;
  d.scale = kCentred;
  d.input(DType::f32, {shape[0], shape[1], shape[2] + 3, shape[3] + 2});
  if (d.r.chance(0.3)) d.set("axes", Dims{0, 2, 3});
}

void local_response(Draft& d) {
  const Dims shape = with_channels(d, 3);
  d.input(DType::f32, shape);
  d.set("size", d.r.integer(1, 5));
  alpha(d, "alpha", 0.01, 0.5);
  alpha(d, "beta", 0.3, 1);
  alpha(d, "bias", 0.5, 2);
}

constexpr Spec kActivationSpecs[] = {
    {"Relu", 6, 23, plain},
    {"Sigmoid", 6, 23, plain},
    {"Softplus", 1, 23, plain},
    {"Tanh", 6, 23, plain},
    {"Softsign", 1, 23, plain},
    {"Mish", 18, 23, plain},
    {"HardSwish", 14, 23, plain},
    {"Celu", 12, 23, one_parameter},
    {"Elu", 6, 23, one_parameter},
    {"Gelu", 20, 23, one_parameter},
    {"HardSigmoid", 6, 23, one_parameter},
    {"LeakyRelu", 6, 23, one_parameter},
    {"Selu", 6, 23, one_parameter},
    {"Shrink", 9, 23, one_parameter},
    {"ThresholdedRelu", 10, 23, one_parameter},
    {"PRelu", 9, 23, prelu},
    {"Softmax", 1, 23, softmax},
    {"LogSoftmax", 1, 23, softmax},
    {"Hardmax", 13, 23, softmax},
    {"BatchNormalization", 9, 23, batch_normalization},
    {"InstanceNormalization", 6, 23, instance_normalization},
    {"GroupNormalization", 18, 23, group_normalization},
    {"LayerNormalization", 17, 23, layer_normalization},
    {"RMSNormalization", 23, 23, layer_normalization},
    {"LpNormalization", 1, 23, lp_normalization},
    {"MeanVarianceNormalization", 9, 23, mean_variance},
    {"LRN", 1, 23, local_response},
};

}  // namespace

std::span<const Spec> activation_specs() { return kActivationSpecs; }

}  // namespace oclc::fuzz

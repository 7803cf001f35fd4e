#include <cmath>
#include <numbers>

#include "frontends/cpp/nn.h"

namespace oclc::nn {
namespace {

Tensor clamp(const Tensor& x, double lo, double hi) {
  Network& net = x.network();
  return apply("min", {apply("max", {x, net.scalar(x.dtype(), lo)}), net.scalar(x.dtype(), hi)});
}

}  // namespace

Tensor relu(const Tensor& x) { return apply("relu", {x}); }
Tensor leaky_relu(const Tensor& x, double slope) {
  return apply("where", {apply("less", {x, x.network().scalar(x.dtype(), 0)}), x * slope, x});
}
Tensor relu6(const Tensor& x) { return clamp(x, 0, 6); }
Tensor sigmoid(const Tensor& x) { return apply("sigmoid", {x}); }
Tensor tanh(const Tensor& x) { return apply("tanh", {x}); }
Tensor silu(const Tensor& x) { return x * sigmoid(x); }
Tensor gelu(const Tensor& x) { return x * 0.5 * (apply("erf", {x * (1 / std::numbers::sqrt2)}) + 1); }
Tensor gelu_tanh(const Tensor& x) { return x * 0.5 * (tanh((x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi)) + 1); }
Tensor hard_sigmoid(const Tensor& x) { return clamp(x + 3, 0, 6) / 6; }
Tensor hard_swish(const Tensor& x) { return x * hard_sigmoid(x); }
Tensor softplus(const Tensor& x) { return apply("softplus", {x}); }

}  // namespace oclc::nn

// The usual layers. `name` is the layer's name inside the open scopes; its parameters are `name.weight`, `name.bias`, ... with
// the names and layouts of PyTorch's modules, so that a state dictionary fits. All throw CompileError naming the layer.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "frontends/cpp/network.h"

namespace oclc::nn {

// y[.., o] = sum over i of x[.., i] * weight[o, i] + bias[o]
Tensor linear(Network& net, std::string_view name, const Tensor& x, std::int64_t features, bool bias = true);

struct Conv {
  Ints kernel;                           // one size per spatial axis
  Ints stride{}, padding{}, dilation{};  // one per spatial axis; empty: 1, 0, 1
  std::int64_t groups = 1;
  bool bias = true;
};
// x[N, C, spatial..], weight[O, C / groups, kernel..]
Tensor conv(Network& net, std::string_view name, const Tensor& x, std::int64_t channels, const Conv& options);

// (x - running_mean) / sqrt(running_var + epsilon) * weight + bias for each channel (axis 1). While training the mean and
// variance are those of the batch, and running = (1 - momentum) * running + momentum * batch.
Tensor batch_norm(Network& net, std::string_view name, const Tensor& x, double epsilon = 1e-5, double momentum = 0.1);
// Over the last axis.
Tensor layer_norm(Network& net, std::string_view name, const Tensor& x, double epsilon = 1e-5);

// x / sqrt(mean of x^2 + epsilon) * weight over the last axis.
Tensor rms_norm(Network& net, std::string_view name, const Tensor& x, double epsilon = 1e-6);
// (x - mean) / sqrt(variance + epsilon) * weight + bias; mean and variance of each group of channels (axis 1) of each sample.
Tensor group_norm(Network& net, std::string_view name, const Tensor& x, std::int64_t groups, double epsilon = 1e-5);
// The same of each channel alone, without weight and bias (as PyTorch's by default).
Tensor instance_norm(const Tensor& x, double epsilon = 1e-5);

// x; while training each element is 0 with probability `ratio`, else x / (1 - ratio).
Tensor dropout(const Tensor& x, double ratio);

// Rows of weight[count, width] at the indices (i32 or i64).
Tensor embedding(Network& net, std::string_view name, const Tensor& indices, std::int64_t count, std::int64_t width);

struct Attention {
  std::int64_t heads = 1;
  bool causal = false;  // position i sees positions up to i
  Tensor mask{};        // added to the scores [N, heads, T, S], broadcast; may be empty
};
// softmax(q k^T / sqrt(E / heads) + mask) v, projected; query[N, T, E], key and value[N, S, E]. Parameters: in_proj_weight[3 E,
// E], in_proj_bias[3 E], out_proj.weight, out_proj.bias.
Tensor multi_head_attention(Network& net, std::string_view name, const Tensor& query, const Tensor& key, const Tensor& value,
                            const Attention& options);
Tensor self_attention(Network& net, std::string_view name, const Tensor& x, const Attention& options);

// x[.., T, E] with position t turned by t * base^(-2 i / E) in the plane of elements i and i + E / 2; the first position is
// `first`.
Tensor rotary(const Tensor& x, double base = 10000, const Expr& first = 0);

struct Recurrent {
  std::int64_t hidden = 0, layers = 1;
  bool bidirectional = false;
};
struct Sequence {
  Tensor output;               // [N, T, H], or [N, T, 2 H] of both directions
  std::vector<Tensor> states;  // after the last step, [N, H] each: of each layer and direction h, and c of an LSTM
};
// x[N, T, I], states begin as zeros. Parameters as PyTorch's: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, .._reverse.
// While training T must be known: the steps are laid out one after another.
Sequence lstm(Network& net, std::string_view name, const Tensor& x, const Recurrent& options);
Sequence gru(Network& net, std::string_view name, const Tensor& x, const Recurrent& options);

struct ConvTranspose {
  Ints kernel;                                             // one size per spatial axis
  Ints stride{}, padding{}, output_padding{}, dilation{};  // one per spatial axis; empty: 1, 0, 0, 1
  std::int64_t groups = 1;
  bool bias = true;
};
// x[N, C, spatial..], weight[C, O / groups, kernel..]
Tensor conv_transpose(Network& net, std::string_view name, const Tensor& x, std::int64_t channels,
                      const ConvTranspose& options);
// Spatial axes of x[N, C, spatial..] at a multiple of their size (empty: twice): elements repeated, or linear between the
// middles of elements (align_corners=False), for which the sizes are known.
Tensor upsample_nearest(const Tensor& x, const Ints& scale = {});
Tensor upsample_linear(const Tensor& x, const Ints& scale = {});
// Sizes of all axes; what is added holds `value`.
Tensor pad(const Tensor& x, const Ints& before, const Ints& after, double value = 0);

// Elementwise with broadcasting; comparisons give booleans.
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

struct Pool {
  Ints kernel;
  Ints stride{}, padding{};  // empty: the kernel, 0
  bool ceil_mode = false;
};
Tensor max_pool(const Tensor& x, const Pool& options);
// The padding counts as zeros.
Tensor avg_pool(const Tensor& x, const Pool& options);
// [N, C, spatial..] to [N, C]
Tensor global_avg_pool(const Tensor& x);
// All axes from `axis` on become one.
Tensor flatten(const Tensor& x, std::int64_t axis = 1);

// Activations.
Tensor relu(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
Tensor relu6(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor silu(const Tensor& x);          // x * sigmoid(x)
Tensor gelu(const Tensor& x);          // x / 2 * (1 + erf(x / sqrt(2)))
Tensor gelu_tanh(const Tensor& x);     // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
Tensor hard_sigmoid(const Tensor& x);  // min(max(x + 3, 0), 6) / 6
Tensor hard_swish(const Tensor& x);    // x * hard_sigmoid(x)
Tensor softplus(const Tensor& x);

}  // namespace oclc::nn

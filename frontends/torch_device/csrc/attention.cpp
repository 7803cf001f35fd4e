// The attention of nn.MultiheadAttention in inference, which torch has for each device whole: of operators that have plans.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>

#include <cmath>

namespace oclc::torch_device {
namespace {

// q, k and v [batch, heads, places, size of a head] of qkv[batch, places, 3 * heads * size]; q scaled by the root of the size.
std::tuple<at::Tensor, at::Tensor, at::Tensor> split_heads(const at::Tensor& qkv, const at::Tensor& bias, std::int64_t heads) {
  TORCH_CHECK(qkv.dim() == 3 && qkv.size(2) % (3 * heads) == 0, "device ocl: wanted qkv[batch, places, 3 * ", heads,
              " * size], found ", qkv.sizes());
  const std::int64_t size = qkv.size(2) / (3 * heads);
  const at::Tensor all = (qkv + bias).view({qkv.size(0), qkv.size(1), 3, heads, size}).permute({2, 0, 3, 1, 4});
  return {all[0].div(std::sqrt(static_cast<double>(size))), all[1].contiguous(), all[2].contiguous()};
}

// Masked places are those where the mask is true. Kinds: 0 mask[places, places], 1 mask[batch, places], 2 as the scores.
at::Tensor masked(const at::Tensor& scores, const std::optional<at::Tensor>& mask, std::optional<std::int64_t> kind) {
  if (!mask || !mask->defined()) return scores;
  const at::Tensor shaped = kind.value_or(2) == 1 ? mask->view({mask->size(0), 1, 1, mask->size(1)}) : *mask;
  return scores.masked_fill(shaped.to(at::kBool), -std::numeric_limits<double>::infinity());
}

std::tuple<at::Tensor, at::Tensor> multi_head_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                                        std::int64_t width, std::int64_t heads, const at::Tensor& qkv_weight,
                                                        const at::Tensor& qkv_bias, const at::Tensor& weight,
                                                        const at::Tensor& bias, const std::optional<at::Tensor>& mask,
                                                        bool wants_weights, bool averages, std::optional<std::int64_t> kind) {
  TORCH_CHECK(query.dim() == 3 && query.size(2) == width && width % heads == 0, "expected query of 3 axes, the last of ", width,
              " that ", heads, " heads share, got ", query.sizes());
  at::Tensor qkv;
  if (query.is_same(key) && key.is_same(value)) {
    qkv = at::linear(query, qkv_weight);
  } else {
    const auto weights = qkv_weight.chunk(3, 0);
    qkv = at::cat({at::linear(query, weights[0]), at::linear(key, weights[1]), at::linear(value, weights[2])}, 2);
  }
  const auto [q, k, v] = split_heads(qkv, qkv_bias, heads);
  const at::Tensor chances = masked(q.matmul(k.transpose(-2, -1)), mask, kind).softmax(-1);
  const at::Tensor rows = chances.matmul(v).transpose(1, 2).reshape({query.size(0), query.size(1), width});
  at::Tensor given;
  if (wants_weights) given = averages ? chances.mean(1) : chances;
  return {at::linear(rows, weight, bias), given};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_transform_bias_rescale_qkv", split_heads);
  m.impl("_native_multi_head_attention", multi_head_attention);
}

}  // namespace
}  // namespace oclc::torch_device

// A transformer that continues text, character by character: GPT-2's block (Radford et al., "Language Models are Unsupervised
// Multitask Learners", 2019) at a size for two cores.
#pragma once
#include <cstdint>
#include <string>

#include "frontends/cpp/nn.h"

namespace tiny_gpt {

namespace nn = oclc::nn;

struct Size {
  std::int64_t symbols = 0;  // distinct characters
  std::int64_t context = 64, width = 128, heads = 4, blocks = 3;
  double dropout = 0.1;
};

inline nn::Tensor block(nn::Network& net, const std::string& name, nn::Tensor x, const Size& size) {
  const nn::Network::Scope scope(net, name);
  const nn::Tensor attended =
      self_attention(net, "attention", layer_norm(net, "norm1", x), {.heads = size.heads, .causal = true});
  x = x + dropout(attended, size.dropout);
  nn::Tensor hidden = gelu_tanh(linear(net, "expand", layer_norm(net, "norm2", x), 4 * size.width));
  return x + dropout(linear(net, "contract", hidden, size.width), size.dropout);
}

// tokens[N, T] to logits[N, T, symbols] of the token after each
inline nn::Tensor gpt(nn::Network& net, const nn::Tensor& tokens, const Size& size) {
  nn::Tensor x = embedding(net, "token", tokens, size.symbols, size.width);
  x = x + net.parameter("position", {size.context, size.width});
  for (std::int64_t i = 0; i < size.blocks; ++i) x = block(net, "block" + std::to_string(i), x, size);
  return linear(net, "head", layer_norm(net, "norm", x), size.symbols, false);
}

}  // namespace tiny_gpt

// What each strategy of a convolution would cost on a target, and which one to take.
#pragma once
#include <string>
#include <vector>

#include "compiler/passes/choose_convolution.h"

namespace oclc {

enum class ConvolutionStrategy { implicit, im2col, direct, winograd, depthwise };

std::string_view name_of(ConvolutionStrategy strategy);

struct ConvolutionCost {
  ConvolutionStrategy strategy = ConvolutionStrategy::implicit;
  std::int64_t winograd_tile = 0;
  std::string reason;  // "winograd F(2x2,3x3) 0.61 ms; implicit 0.80 ms, im2col 1.1 ms, direct 2.4 ms"
};

// Seconds that the strategy takes by the model: arithmetic at the rate that it reaches on the target, or the bytes it moves
// beyond the caches, and its launches. Unbound symbols count as one.
double estimate_seconds(const Node& conv, ConvolutionStrategy strategy, std::int64_t winograd_tile, const Target& target);

// Why the convolution does not allow the strategy; empty if it does.
std::string refusal(const Node& conv, ConvolutionStrategy strategy, const ConvolutionOptions& options);

ConvolutionCost choose_strategy(const Node& conv, const ConvolutionOptions& options);

}  // namespace oclc

// What each strategy of a convolution would cost on a target, and which one to take.
#pragma once
#include <string>
#include <vector>

#include "compiler/passes/layout/choose_convolution.h"
#include "compiler/targets/tuning.h"

namespace oclc {

enum class ConvolutionStrategy { implicit, im2col, direct, winograd, depthwise };

std::string_view name_of(ConvolutionStrategy strategy);

// An attribute of a convolution that gradients flow back through.
inline constexpr std::string_view kAdjoint = "adjoint";

struct ConvolutionCost {
  ConvolutionStrategy strategy = ConvolutionStrategy::implicit;
  std::int64_t winograd_tile = 0;
  std::string reason;  // "winograd F(2x2,3x3) 0.61 ms; implicit 0.80 ms, im2col 1.1 ms, direct 2.4 ms"
};

// Seconds that the strategy takes by the model: arithmetic at the rate that it reaches on the target, or the bytes it moves
// beyond the caches, and its launches. Unbound symbols count as one.
double estimate_seconds(const Node& conv, ConvolutionStrategy strategy, std::int64_t winograd_tile, const Target& target);

// True if one launch computes a Winograd convolution: on a CPU, with channels that fill whole vectors of an image whose
// channels will be innermost.
bool fuses_winograd(const Node& conv, const Target& target);

// Why the convolution does not allow the strategy; empty if it does.
std::string refusal(const Node& conv, ConvolutionStrategy strategy, const ConvolutionOptions& options);

// Outputs of a Winograd tile, across and down: what a window of six points leaves of the convolution's filter, or one of four;
// 0 where that is none. F(4x4,3x3) and F(2x2,5x5), or F(2x2,3x3).
std::int64_t winograd_tile(const Node& conv, bool large_window);

// Seconds that Winograd with a window of six points saves beside the best other strategy; 0 if it is not legal.
double gain_of_large_window(const Node& conv, const ConvolutionOptions& options);

// Under which the strategy of a convolution is found that was timed: "conv_fp32", the shapes of image and weights, strides,
// dilations, pads, groups, 4 or 2 for a large window or a small one. Empty if sizes are symbolic.
std::string strategy_key(const Node& conv, const ConvolutionOptions& options, bool large_window);
// What may be timed for it: the strategy's number and Winograd's tile.
std::vector<TunedChoice> strategy_choices(const Node& conv, const ConvolutionOptions& options, bool large_window);

// `large_window`: Winograd has six points, else four. Takes what was timed for strategy_key().
ConvolutionCost choose_strategy(const Node& conv, const ConvolutionOptions& options, bool large_window);

}  // namespace oclc

// Convolutions that take a GPU a few microseconds: steps that wait for gathered operands bound them, not its rate.
#pragma once
#include <optional>

#include "compiler/ir/graph.h"
#include "compiler/passes/layout/choose_convolution.h"

namespace oclc {

struct GatheredSeconds {
  double product = 0;  // by tiles, whose operands are gathered step by step
  double sums = 0;     // by work-items that share the terms of a result
  // By im2col, of rounded operands; none where an implicit product is as fast.
  std::optional<double> patches;
};

// Nothing on a CPU, where sizes are open (any number may come), for one tap but of planes in one group, and where launches join
// for one tap and for windows of one group without strides or dilation, which are small GEMMs of megakernels.
std::optional<GatheredSeconds> gathered_seconds(const Node& conv, const ConvolutionOptions& options);

}  // namespace oclc

// Convolutions that take a GPU a few microseconds: steps that wait for gathered operands bound them, not its rate.
#pragma once
#include <optional>

#include "compiler/ir/graph.h"
#include "compiler/passes/layout/choose_convolution.h"

namespace oclc {

struct GatheredSeconds {
  double product = 0;  // by tiles, whose operands are gathered step by step
  double sums = 0;     // by work-items that share the terms of a result
  std::optional<double>
      patches;  // by a matrix of patches, which are products of rounded operands; none where gathering is as fast
};

// Nothing on a CPU, for one tap, whose operand is not gathered, for windows of one group without strides or dilation where
// launches join, which are small GEMMs of megakernels, and where sizes are open: any number may come.
std::optional<GatheredSeconds> gathered_seconds(const Node& conv, const ConvolutionOptions& options);

}  // namespace oclc

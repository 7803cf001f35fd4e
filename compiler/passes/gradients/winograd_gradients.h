// Weight gradients of 3x3 convolutions by Winograd, which takes a quarter of the products, on CPUs and on sm_90a in single
// precision.
#pragma once
#include "compiler/passes/layout/choose_convolution.h"

namespace oclc {

// Rewrites each conv_weight_grad that saves time by it to the two transforms, a product for each point and the transform back,
// F(4x4,3x3). It stands before the pipeline, which expands the others to sums over all positions. True if the graph changed.
bool winograd_gradients(Graph& graph, const ConvolutionOptions& options);

}  // namespace oclc

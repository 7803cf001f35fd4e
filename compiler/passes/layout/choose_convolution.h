// Choice of a strategy for each convolution.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "compiler/ir/graph.h"
#include "compiler/targets/target.h"

namespace oclc {

struct ConvolutionOptions {
  Target target;
  std::string strategy = "auto";  // auto, im2col, implicit, direct, winograd
  bool launches_join = true;      // the graph has so many kernels that some may be parts of one launch
};

// Rewrites each conv to its strategy: implicit stays conv (an implicit GEMM), direct stays conv (loops over registers), im2col
// becomes unfold and matmul, winograd becomes its transforms and a batched matmul with weights transformed at compile time.
// On vectors, where all that reads the result computes on planes, one tap, or few channels, become a matmul with the weights on
// the left ("planes"). A forced strategy that a convolution does not allow leaves it implicit. The attribute
// "strategy" holds the choice and "strategy_reason" the reason, for reports. Without the pass all convolutions are implicit. It
// stands behind the pipeline, whose rules know conv alone, and before layouts are assigned. True if the graph changed.
bool choose_convolution(Graph& graph, const ConvolutionOptions& options);

// Values that all readers take row by row: the caller, elementwise operators beside other planes, and products of planes.
std::set<const Value*> values_read_as_planes(const Graph& graph, const Target& target);

}  // namespace oclc

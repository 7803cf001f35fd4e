// Images of few channels, as models read them.
#pragma once
#include "compiler/ir/graph.h"
#include "compiler/targets/target.h"

namespace oclc {

// Where matrix units multiply (sm_90a), a picture of three channels that a convolution reads with more than one tap is stored
// once with its channels innermost and a fourth one of zeros, if that takes less time than it saves:
// loaders then copy a pixel with one instruction instead of each of its numbers, which from planes lie in as many lines. Stands
// before convolutions are chosen. True if the graph changed.
bool widen_images(Graph& graph, const Target& target);

}  // namespace oclc

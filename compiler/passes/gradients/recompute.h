// Computing cheap values of the forward pass again instead of keeping them for the backward pass.
#pragma once
#include <cstdint>
#include <limits>

#include "compiler/ir/graph.h"

namespace oclc {

// Only what costs nothing is computed again.
inline constexpr std::int64_t kRecomputeNone = std::numeric_limits<std::int64_t>::max();

// The forward pass of a training entry is what its results other than new state need; the rest reads values of it, which lie in
// memory until then. Of these values some are computed again from the tensors that are kept, by copies of nodes:
//  - those of at least `smallest_bytes`, by elementwise, movement and generator nodes;
//  - all but small ones, by chains of light elementwise nodes over one tensor of that size: whoever reads the value reads that
//    tensor instead. Of a convolution, its normalisation and its ReLU the convolution's result is kept.
// Kept is a set of tensors of the least sum of bytes from which all can be computed: a minimum cut of the forward graph between
// what is costly (contractions, windows, reductions, rows) and what the backward pass reads (as in AOTAutograd's partitioner);
// of several such sets the one with the fewest nodes to repeat. Symbols count as 8. The copies have the attribute "recompute",
// so that no pass or kernel joins them with the originals. Runs behind the pipeline, whose cse would see equals where types of
// attributes get lost. True if the graph changed.
bool recompute(Graph& graph, std::int64_t smallest_bytes);

}  // namespace oclc

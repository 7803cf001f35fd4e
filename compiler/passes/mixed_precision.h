// Mixed precision: which values of a training step lie in memory as 16-bit floats.
#pragma once
#include <span>

#include "compiler/ir/graph.h"

namespace oclc {

// The node attribute that says what a result is stored as, if it is stored at all: a DType. All computing stays in the result's
// own type, see KernelBuilder.
inline constexpr std::string_view kStoredAs = "stored_as";

// In an entry that updates state, activations and their gradients are stored as `storage`. These are what products, windows,
// normalisations and lookups make of the entry's inputs and what elementwise operators and movement make of that, as long as a
// product or a window reads it further on: the parameters' gradients, statistics and losses keep their type, and so does
// all that depends on state alone. Runs behind the pipeline, so that no pass has to know. True if the graph changed.
bool mixed_precision(Graph& graph, std::span<const StateVariable> states, DType storage);

}  // namespace oclc

// Mixed precision: which values lie in memory as 16-bit floats.
#pragma once
#include <span>

#include "compiler/ir/graph.h"

namespace oclc {

// The node attribute that says what a result is stored as, if it is stored at all: a DType. All computing stays in the result's
// own type, see KernelBuilder.
inline constexpr std::string_view kStoredAs = "stored_as";

// An entry that updates a state.
bool updates_state(const Graph& graph, std::span<const StateVariable> states);

// Activations and their gradients are stored as `storage`. These are what products, windows, normalisations and lookups make of
// the entry's inputs and what elementwise operators and movement make of that, as long as a product or a window reads it
// further on: the parameters' gradients, statistics and losses keep their type, and so does all that depends on state alone.
// With `keep_pairs` what a product of two computed operands reads keeps its type too, as on tile units, which take constant
// right operands alone. Runs behind the pipeline, so that no pass has to know. True if the graph changed.
bool store_activations(Graph& graph, std::span<const StateVariable> states, DType storage, bool keep_pairs = false);

}  // namespace oclc

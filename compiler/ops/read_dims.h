// Dimensions that are known only when the plan runs: how many elements are not zero, how often a loop goes round.
#pragma once
#include "compiler/ir/graph.h"

namespace oclc {

// Replaces each `read_dims` by a `bind_dims` whose body holds everything that depends on its symbols, so that the rest of the
// compiler sees that dependence as operands and results. Later reads end up in the bodies of earlier ones. Bodies of loops are
// treated alike; what they give must not have a shape that they read.
void nest_read_dims(Graph& graph);

}  // namespace oclc

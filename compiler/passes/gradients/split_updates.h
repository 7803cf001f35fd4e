// New values of state, computed where their gradients are.
#pragma once
#include "compiler/ir/graph.h"
#include "compiler/targets/target.h"

namespace oclc {

// On sm_90a, where elementwise operators of a concatenation of gradients, as an optimizer's, lead to nothing but results of the
// graph, they are computed part by part: for each large product by itself, so that its kernel stores the new parameters and
// moments and the gradient is neither written nor read; and for all that lies between two of those together. Stands behind
// all passes that simplify, since the parts are slices that none should join again. True if the graph changed.
bool split_updates(Graph& graph, const Target& target);

}  // namespace oclc

// Which depthwise convolutions and pools compute on planes as they lie.
#pragma once
#include "compiler/ir/graph.h"
#include "compiler/targets/target.h"

namespace oclc {

// Marks depthwise convolutions and pools on a CPU that read planes and whose results are read as planes: nothing is laid out
// channels-last for them, and vectors run along rows. Averages over what lies inside the plane become averages over whole
// windows times a constant for each position. To be called before layouts are chosen. Without it such a layer copies its planes
// to channels and back. True if the graph changed.
bool keep_nchw(Graph& graph, const Target& target);

// Whether keep_nchw marked the node.
bool keeps_planes(const Node& node);

}  // namespace oclc

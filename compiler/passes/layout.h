// Layout assignment: which values are stored channels-last.
#pragma once
#include "compiler/ir/graph.h"

namespace oclc {

// Convolutions, pooling and what lies between them elementwise get channels-last storage, so that vectors run over channels
// and every load of a filter tap is contiguous; weights of depthwise convolutions likewise. Values that a reshape or the
// outside reads stay row-major. Without it kernels are right but walk memory in strides. True if a layout changed.
bool assign_layouts(Graph& graph);

}  // namespace oclc

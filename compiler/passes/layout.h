// Layout assignment: which values are stored channels-last.
#pragma once
#include "compiler/ir/graph.h"

namespace oclc {

// Convolutions, pooling and what lies between them elementwise get channels-last storage, so that vectors run over channels
// and every load of a filter tap is contiguous; weights of depthwise convolutions likewise. Values that a reshape or the
// outside reads stay row-major. Without it kernels are right but walk memory in strides. True if a layout changed.
bool assign_layouts(Graph& graph);

// Storage order N, H, W, C of a value [N, C, H, W] of any rank from 2 on.
Layout channels_last(std::size_t rank);
// Lanes of OpenCL's widest vector of floats: rows of whole such vectors are whole vectors on every target.
inline constexpr std::int64_t kWidestVector = 16;

}  // namespace oclc

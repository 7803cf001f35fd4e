// What convolution and pooling share.
#pragma once
#include <vector>

#include "compiler/ir/op_def.h"

namespace oclc {

// x[N, C, 1 to 3 spatial dimensions]; CompileError else.
void check_spatial_rank(const TensorType& x);
// Number of positions along each spatial axis, from the attributes strides, dilations, pads and ceil_mode (absent: 0).
// `cut`: see window_positions.
Shape window_shape(const Node& node, const TensorType& x, const std::vector<std::int64_t>& kernel, bool cut = false);

}  // namespace oclc

// A product with a known matrix along one axis: resizing and pooling whose windows differ in size.
#pragma once
#include "frontends/pt2/context.h"

namespace oclc::pt2 {

// y[.., i, ..] = sum(k: shares[i, k] x[.., k, ..]) with shares [out, in]; `in` is the size of the axis.
Value* axis_product(AtenContext& c, Value* x, std::size_t axis, HostTensor shares);

}  // namespace oclc::pt2

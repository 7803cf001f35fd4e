// Orders of axes and of elements along them.
#pragma once
#include "frontends/pt2/context.h"

namespace oclc::pt2 {

Ints all_axes(std::size_t rank);  // 0, 1, ..
// The axes in another order; x itself where that is theirs.
Value* reordered(AtenContext& c, Value* x, const Ints& perm);
// From the last element on along these axes.
Value* flipped(AtenContext& c, Value* x, const Ints& axes);

}  // namespace oclc::pt2

// Orders of axes and of elements along them.
#pragma once
#include "frontends/pt2/context.h"

namespace oclc::pt2 {

Ints all_axes(std::size_t rank);  // 0, 1, ..
// The axes in another order; x itself where that is theirs.
Value* reordered(AtenContext& c, Value* x, const Ints& perm);
// From the last element on along these axes.
Value* flipped(AtenContext& c, Value* x, const Ints& axes);

// Positions [count, size] that windows of `size` elements read which begin `step` apart.
Value* window_places(AtenContext& c, const Expr& count, const Expr& size, const Expr& step);
// Elements of the last two axes: the i-th of `count` is x[.., i - min(offset, 0), i + max(offset, 0)].
Value* diagonal_elements(AtenContext& c, Value* x, std::int64_t offset, const Expr& count);

}  // namespace oclc::pt2

// Windows of tensors by reading, for integers: the core convolves and averages floating-point numbers alone.
#pragma once
#include <vector>

#include "frontends/pt2/context.h"

namespace oclc::pt2 {

// One number a spatial axis. A negative number of zeros cuts.
struct Windows {
  Ints kernel, strides, dilations, before, after;
};

// x[N, C, in..] as [N, C, out.., kernel..], with zeros around x.
Value* windows_of(AtenContext& c, Value* x, const Windows& w);

// x[N, C, in..] with weight[O, C / groups, kernel..]: [N, O, out..].
Value* convolved_by_windows(AtenContext& c, Value* x, Value* weight, const Windows& w, std::int64_t groups);

// x[N, C, in..] with weight[C, O / groups, kernel..], transposed: as many zeros as w.strides says between neighbours, of which
// w.before and w.after are cut off around the result.
Value* convolved_back_by_windows(AtenContext& c, Value* x, Value* weight, const Windows& w, std::int64_t groups);

}  // namespace oclc::pt2

// p-norms of differences, as distances and losses take them.
#pragma once
#include "frontends/pt2/context.h"

namespace oclc::pt2 {

// Of x along its last axis: (sum |x|^p)^(1/p); the number of elements that are not 0 for p = 0, the largest for an infinite p.
Value* norms(AtenContext& c, Value* x, double p);

}  // namespace oclc::pt2

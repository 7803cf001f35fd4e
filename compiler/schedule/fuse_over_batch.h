// Batches image by image: kernels that follow one another over the same outermost axis, and of which each reads of the others
// only what they computed for the same value of it, become a loop over that axis inside a megakernel. What they hand on
// then stays in the caches, in the memory of one image.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Makes loops of those stretches where the traffic saved is more than the weights that every image reads anew.
void fuse_over_batch(Schedule& schedule, const ScheduleContext& context);

// A lower bound of e wherever all guards hold; -kUnbounded if none is known. Multiples of guards are taken away where that
// helps.
std::int64_t lower_bound(Expr e, const std::vector<Expr>& guards);

// Whether 0 <= index < size wherever all guards hold, as far as can be shown; false otherwise.
bool lies_within(const Expr& index, const std::vector<Expr>& guards, std::int64_t size);

}  // namespace oclc

// Batches image by image: kernels that follow one another over the same outermost axis, and of which each reads of the others
// only what they computed for the same value of it, become a loop over that axis inside a megakernel. What they hand on
// then stays in the caches, in the memory of one image.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Makes loops of those stretches where the traffic saved is more than the weights that every image reads anew.
void fuse_over_batch(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

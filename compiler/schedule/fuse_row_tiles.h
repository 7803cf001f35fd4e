// One image, tile of rows by tile of rows: kernels that follow one another over rows of an image, of which each reads of the
// others only rows near those it computes, become a loop over tiles of rows inside a megakernel. What they hand on then stays
// in the caches, in the memory of one tile: for arenas, which halve in networks of light convolutions at the same time. A
// tile's neighbouring rows that a later kernel reads as well are computed again.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Makes loops of those stretches where the traffic saved is more than what is computed again, weights read anew and the loop's
// steps.
void fuse_row_tiles(Schedule& schedule, const ScheduleContext& context);
// The same of kernels that go through images first, whose rows are then those of one image after another.
void fuse_batched_row_tiles(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

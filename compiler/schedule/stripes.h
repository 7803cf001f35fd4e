// One image stripe by stripe: kernels that follow one another over rows of an image, of which each reads of the others only
// rows near those it computes, become a loop over stripes of rows inside a resident launch. What they hand on then stays in the
// caches, in the memory of one stripe: for arenas, which halve in networks of light convolutions at the same time. A stripe's
// neighbouring rows that a later kernel reads as well are computed again.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Makes loops of those stretches where the traffic saved is more than what is computed again, weights read anew and the loop's
// steps.
void stripes(Schedule& schedule, const ScheduleContext& context);
// The same of kernels that go through images first, whose rows are then those of one image after another.
void batched_stripes(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

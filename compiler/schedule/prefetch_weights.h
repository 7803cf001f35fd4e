// Software prefetch across launches: while groups that share terms wait for one another, memory is idle.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// So many launches prefetch a piece of the same weights each, in their order: what lies in the second-level cache when it is
// read, together with what these launches read and write themselves. Measured on an H100, whose cache has 50 MB: 2 to 8 MiB
// gain, 6 most.
constexpr std::int64_t kPrefetchingLaunches = 3, kPrefetchedBytes = 6 << 20;

// Lets launches of single kernels whose groups share terms prefetch the weights of a product of one row (row_weights.h) that
// follows soon, where launches between them are of single kernels as well: KernelStep::prefetch.
void prefetch_weights(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

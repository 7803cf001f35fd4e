// Launches of a GPU that a reader's groups do in passing: a layer norm or softmax in front of a sum over its rows, keys and
// values put behind those of a cache.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Where a reduction alone reads the rows that a row kernel writes, element by element along what it sums over, its groups
// compute the row's statistics themselves, over again, and the rows are never stored. Outside of loops, and where the estimated
// time of computing them again is less than a launch's.
void inline_row_statistics(Schedule& schedule, const ScheduleContext& context);

// Where a short kernel only puts values side by side, as the keys of a cache and those of a new token, and sums alone read what
// it writes, about once, they read from where it reads. What is a result is then written last, and other copies never.
void forward_copies(Schedule& schedule, const ScheduleContext& context);

// Pointwise kernels over one iteration space become one launch where nothing between them needs the order that they have, and
// where a launch takes longer than what they move.
void fuse_pointwise(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

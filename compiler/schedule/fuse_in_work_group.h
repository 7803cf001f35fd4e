// Small kernels of a GPU that hand on a few values become one launch: a squeeze-and-excite block's mean and two products, the
// scores, softmax and sum of one head of a token.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Makes a chain (WorkGroupStep) of kernels that follow one another where one group, or one group for each value of their
// outermost axis, computes them sooner than launches would, and each reads what one before it computed, of the same group.
// Not of kernels that a megakernel takes in (megakernel.h), where a step costs less than a chain's group saves.
void fuse_in_work_group(Schedule& schedule, const ScheduleContext& context);

// Work-items of a chain's group.
int chain_items(const Target& target);

}  // namespace oclc

// Long sums of few results, of elements and, on a GPU, of products: cut into parts that more work-groups compute, added up by
// another launch. Without it a weight gradient, a layer of one image, or the mean of a channel keeps a few compute units busy
// with a chain of steps and leaves the others idle.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Replaces contractions and reductions outside of loops, where the estimated time is less, by one that computes partial sums
// and one that adds them in the order of the terms and does what follows; or has the groups of one launch do both, see
// contraction_f16_sm90a.cl. The order depends on nothing but shapes and target.
void split_k(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

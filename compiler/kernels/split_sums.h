// Long sums of few products on a GPU: cut into parts that more work-groups compute, added up by a second launch. Without it a
// weight gradient, or a layer of one image, keeps a few compute units busy with a chain of steps and leaves the others idle.
#pragma once
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// Replaces contractions outside of loops, where the estimated time is less, by one that computes partial sums and one that adds
// them in the order of the terms and does what follows. The order depends on nothing but shapes and target.
void split_sums(Schedule& schedule, const Target& target);

}  // namespace oclc

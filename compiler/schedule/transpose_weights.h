// Weights of sums that groups share, stored so that the terms of a sum lie side by side.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// A matrix of constants [term][result] that one sum alone reads, a product of one row, becomes [result][term] on a GPU: the
// work-items that share a sum read whole lines of memory, however few results a group has. Where operands of products are
// rounded (TF32), such weights, which memory sends once a run, are stored as integers of 16 bits with a scale for each result,
// if that rounds them less; those of 12 bits that row_weights.h tells of stay floats, for code generation to pack.
void transpose_weights(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

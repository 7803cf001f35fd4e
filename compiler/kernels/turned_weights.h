// Weights of sums that groups share, stored so that the terms of a sum lie side by side.
#pragma once
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// A matrix of constants [term][result] that one sum alone reads, a product of one row, becomes [result][term] on a GPU: the
// work-items that share a sum read whole lines of memory, however few results a group has.
void turn_weights(Schedule& schedule, const Target& target);

}  // namespace oclc

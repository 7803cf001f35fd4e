// Sums over rows of neighbours on a CPU: rows that lie one after another in memory are one stream, which is all that some
// processors guess, and a piece of each row is as many streams as rows.
#pragma once
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// Whether the kernel's sums run over whole rows of its last axis, long enough that adding them up row by row pays.
bool sums_whole_rows(const Kernel& kernel, const Target& target);
// Reductions over rows outside of loops, of fewer sums than cores, become one that adds up ranges of rows and one that adds up
// what those give, in their order. It depends on nothing but shapes and target.
void cut_whole_rows(Schedule& schedule, const Target& target, std::vector<Step>& steps);

}  // namespace oclc

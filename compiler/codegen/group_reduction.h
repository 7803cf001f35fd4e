// Reductions and rows on a GPU: the work-items of a group share the terms of each sum.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"
#include "compiler/targets/target.h"

namespace oclc {

// Code for kernels whose stages are long and of one element type, on a target without a limit of loop iterations; nothing for
// others and for contractions. Partial results are combined in local memory in an order that is always the same.
// `groups` not 0: a part of a launch of so many groups of the target's size, see resident_groups.h; the sums are the same.
std::optional<GeneratedKernel> generate_group_reduction(const Kernel& kernel, const Target& target, std::int64_t groups = 0);

}  // namespace oclc

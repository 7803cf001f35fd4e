// Reductions and rows on a GPU: the work-items of a group share the terms of each sum.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"
#include "compiler/targets/target.h"

namespace oclc {

// Code for kernels whose stages are long and of one element type, on a target without a limit of loop iterations; nothing for
// others and for contractions. Partial results are combined in local memory in an order that is always the same.
// `buffers` tell what is constant: a function `<name>_ahead`, of the tile function's parameters but local memory, asks for what
// the last stage reads of such. With `whole_groups` every kernel has groups of the target's size.
std::optional<GeneratedKernel> generate_group_reduction(const Kernel& kernel, const std::vector<Buffer>& buffers,
                                                        const Target& target, bool whole_groups = false);

}  // namespace oclc

// Reductions and rows on a GPU: the work-items of a group share the terms of each sum.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"
#include "compiler/targets/target.h"

namespace oclc {

// Code for kernels whose stages are long and of one element type, on a target without a limit of loop iterations; nothing for
// others and for contractions. Partial results are combined in local memory in an order that is always the same.
// `groups` not 0: part of a launch of `groups` work-groups of the target's size, see megakernel_groups.h; the sums are the
// same.
std::optional<GeneratedKernel> generate_group_reduction(const Kernel& kernel, const Target& target, std::int64_t groups = 0);

// The same for one group of `items` work-items that computes all results, tile by tile: the function `name`_tile of the
// kernel's operands and symbols, of the tile's number, and of local memory, a pointer to `parts`, for `floats` floats. Takes
// shorter sums than a launch of their own would be worth.
struct GroupTiles {
  std::string function, parts;
  Expr tiles;
  std::int64_t floats = 0;
};
std::optional<GroupTiles> generate_group_tiles(const Kernel& kernel, const Target& target, int items, const std::string& name);

}  // namespace oclc

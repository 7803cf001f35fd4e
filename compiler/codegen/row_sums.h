// Sums over rows that are added up row by row: a work-item reads whole rows, one after another, and keeps a sum for each column
// in local memory.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"

namespace oclc {

// Nothing where the kernel's sums are of another kind, too short (see sums_whole_rows()), or fewer than cores.
std::optional<GeneratedKernel> generate_row_sums(Kernel kernel, const Target& target);

}  // namespace oclc

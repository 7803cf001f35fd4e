// Fused multiply-adds on all terms at once: templates contraction_cpu.cl, contraction_packed_a_cpu.cl and
// contraction_packed_b_cpu.cl.
#pragma once
#include <optional>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

// Nothing where none of them can read the operands. `copied`: of the template that copies this operand.
std::optional<FmaTiles> choose_fma(const Problem& problem, const Target& target,
                                   std::optional<LocalCopy> copied = std::nullopt);

}  // namespace oclc

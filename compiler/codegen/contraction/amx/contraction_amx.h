// Contractions on the tile units of x86 processors: the template contraction_amx.cl.
#pragma once
#include <optional>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_choice.h"

namespace oclc {

// Code for a contraction with a constant right operand, where the target has such units and they beat fused multiply-adds by
// estimate. Nothing for a convolution that asks for Winograd, and for weights that no sum of bfloat16 parts holds.
std::optional<GeneratedKernel> generate_amx(const ContractionView& view, const std::vector<Buffer>& buffers,
                                            const Target& target);

}  // namespace oclc

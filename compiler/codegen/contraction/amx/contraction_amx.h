// Contractions on the tile units of x86 processors with a constant right operand: templates contraction_amx.cl,
// contraction_window_amx.cl, contraction_patches_amx.cl, and those of int8 limbs.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

// Whether the constant weights are sums of bfloat16 parts, and columns of integers of three bytes.
bool can_store_parts(const ContractionView& view, const std::vector<Buffer>& buffers);
bool can_store_limbs(const ContractionView& view, const std::vector<Buffer>& buffers);

GeneratedKernel emit_amx(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                         const Target& target);

}  // namespace oclc

// Contractions on a CPU by fused multiply-adds on all terms at once: templates contraction_cpu.cl, contraction_packed_a_cpu.cl
// and contraction_packed_b_cpu.cl.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

GeneratedKernel emit_fma(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                         const Target& target);

}  // namespace oclc

// Contractions on a GPU through the templates contraction_*gpu.cl and contraction_*sm90a.cl. Text for a matrix unit stands
// under
// `#if OCLC_NV_SM >= 80`, which the runtime defines on devices that have it; the other text has the same work-groups.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

GeneratedKernel emit_gpu(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                         const Target& target);

}  // namespace oclc

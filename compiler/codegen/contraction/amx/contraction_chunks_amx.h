// Contractions of two operands of run time on the tile units of x86 processors: the template contraction_chunks_amx.cl.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

GeneratedKernel emit_amx_chunks(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                                const Target& target);

}  // namespace oclc

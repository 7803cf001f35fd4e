// Contractions on CPUs whose right operand is given at run time: chunks of terms of it are copied, and of a left one of run
// time; row tiles of a constant one are packed at compile time (contraction_chunks_cpu.cl).
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

GeneratedKernel emit_chunks(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                            const Target& target);

}  // namespace oclc

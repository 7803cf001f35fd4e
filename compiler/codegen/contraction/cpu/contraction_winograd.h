// Convolutions of 3x3 and 5x5 taps on a CPU through the template contraction_winograd_cpu.cl. Their weights are constant, or
// transformed by another kernel: see winograd_filters.h.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

GeneratedKernel emit_winograd(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                              const Target& target);

}  // namespace oclc

// Contractions of few rows on a CPU whose right operand is given at run time: see contraction/few_rows.h.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

GeneratedKernel emit_few_rows(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                              const Target& target);

}  // namespace oclc

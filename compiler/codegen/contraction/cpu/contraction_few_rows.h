// Contractions of few rows on a CPU whose right operand is given at run time: it is read once, where it lies, along its rows
// (contraction_rows_cpu.cl) or its columns (contraction_dots_cpu.cl). The other templates read it by tiles of few columns, a
// page from term to term, or copy it.
#pragma once
#include <optional>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/targets/target.h"

namespace oclc {

std::optional<GeneratedKernel> generate_few_rows(const ContractionView& view, const std::vector<Buffer>& buffers,
                                                 const Target& target);

}  // namespace oclc

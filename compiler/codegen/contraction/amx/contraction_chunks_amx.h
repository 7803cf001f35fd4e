// Contractions of two operands of run time on the tile units of x86 processors: the template contraction_chunks_amx.cl.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/targets/target.h"

namespace oclc {

// Nothing where the target has no such units, where they gain nothing by estimate, and for operands that no vectors copy.
std::optional<GeneratedKernel> generate_chunks_amx(const ContractionView& view, const Target& target);

}  // namespace oclc

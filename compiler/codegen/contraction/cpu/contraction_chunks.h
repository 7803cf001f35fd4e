// Contractions on CPUs whose right operand is given at run time: chunks of terms of it, and of a left one of run time, are
// copied (contraction_chunks_cpu.cl).
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_choice.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/targets/target.h"

namespace oclc {

std::optional<GeneratedKernel> generate_chunks(const ContractionView& view, const ContractionChoice* choice,
                                               const Target& target);

// Where A is a constant without groups or taps: its row tiles are packed at compile time.
std::optional<GeneratedKernel> generate_chunks_beside_panels(const ContractionView& view, const std::vector<Buffer>& buffers,
                                                             const Target& target);

}  // namespace oclc

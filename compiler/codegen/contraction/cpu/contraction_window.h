// Convolutions of few input channels on a CPU through the template contraction_window_cpu.cl.
#pragma once
#include <optional>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_choice.h"

namespace oclc {

// Nothing for what is no such convolution, and where no window of the image fits local memory.
std::optional<GeneratedKernel> generate_window(const ContractionView& view, const ContractionChoice& choice,
                                               const std::vector<Buffer>& buffers, const Target& target);

}  // namespace oclc

// Contractions on a GPU through the templates contraction_*gpu.cl.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"

namespace oclc {

// Code for a kernel with a contraction, or nothing where no template applies (integer types, a target that limits loop
// iterations); generate_loops handles those. Text for a matrix unit stands under `#if OCLC_NV_SM >= 80`, which the runtime
// defines on devices that have it; the other text has the same work-groups.
std::optional<GeneratedKernel> generate_gpu_contraction(const Kernel& kernel, const std::vector<Buffer>& buffers,
                                                        const Target& target);

}  // namespace oclc

// Contractions on a GPU through the template contraction_gpu.cl.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"

namespace oclc {

// Code for a kernel with a contraction, or nothing where the template does not apply (integer types, a target that limits loop
// iterations); generate_loops handles those.
std::optional<GeneratedKernel> generate_gpu_contraction(const Kernel& kernel, const std::vector<Buffer>& buffers,
                                                        const Target& target);

}  // namespace oclc

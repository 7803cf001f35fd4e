// Contractions on a CPU through the templates contraction_*_cpu.cl.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"

namespace oclc {

// Code for a kernel with a contraction, or nothing where no template applies (integer types, sizes that a template's local
// array needs as literals but that are symbolic); generate_loops handles those.
std::optional<GeneratedKernel> generate_contraction(const Kernel& kernel, const std::vector<Buffer>& buffers,
                                                    const Target& target);

}  // namespace oclc

// The template contraction_small_gpu.cl: products that one launch, or a part of one, is over with soon.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

GeneratedKernel emit_small_gemm(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                                const Target& target);

}  // namespace oclc

// A product of one row with constant weights in 12 bits on a GPU.
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"

namespace oclc {

// Nothing where the kernel is no such product, see schedule/row_weights.h, or where its weights need more bits.
std::optional<GeneratedKernel> generate_row_gpu(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target);

}  // namespace oclc

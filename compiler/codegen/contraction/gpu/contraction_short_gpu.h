// The template contraction_short_gpu.cl: products that one launch, or a part of one, is over with soon.
#pragma once
#include <optional>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/targets/target.h"

namespace oclc {

// Nothing for products that are not marked as short.
std::optional<GeneratedKernel> generate_short_gpu(const ContractionView& view, const std::vector<Buffer>& buffers,
                                                  const Target& target, bool is_part = false);

}  // namespace oclc

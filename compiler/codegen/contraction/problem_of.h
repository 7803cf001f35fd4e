// A kernel's contraction in numbers.
#pragma once
#include <vector>

#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

Problem problem_of(const ContractionView& view, const std::vector<Buffer>& buffers);
// The same with what a GPU's work-items load.
Problem gpu_problem_of(const ContractionView& view, const std::vector<Buffer>& buffers);

}  // namespace oclc

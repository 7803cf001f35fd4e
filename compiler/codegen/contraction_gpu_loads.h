// How the templates contraction_*gpu.cl read A and B: texts of their holes A_ELEMENTS and B_ELEMENTS.
#pragma once
#include <string>

#include "compiler/codegen/contraction_view.h"

namespace oclc {

// Lines that set `v` to the elements of one load.
struct GpuLoad {
  int width = 1;        // elements of a load: 1 or 4, side by side in memory
  bool along_k = true;  // they follow one another along k; otherwise along the rows of A or the columns of B
  std::string text;
};

GpuLoad load_of_a(const ContractionView& view, const std::vector<Buffer>& buffers);
GpuLoad load_of_b(const ContractionView& view, const std::vector<Buffer>& buffers);

}  // namespace oclc

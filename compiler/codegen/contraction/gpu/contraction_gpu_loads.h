// How the templates contraction_*gpu.cl read A and B: texts of their holes A_ELEMENTS and B_ELEMENTS.
#pragma once
#include <string>

#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

// Lines that set `v` to the elements of one load.
struct GpuLoad {
  int width = 1;        // elements of a load: 1, or a contiguous vector of 4
  bool along_k = true;  // they follow one another along k; otherwise along the rows of A or the columns of B
  std::string text;
  // If the elements are copied as they lie, aligned, or are zeros: lines that set `from` to their place and `inside` to 0 for
  // zeros.
  std::string place;
  // If that place, or that of a single element, is the sum of one of the row and one of the term, and is worth being found that
  // way: lines that set `row_at` and `row_edges`, and lines that set `base`, `step_at` and `step_edges`. The elements lie at
  // base + row_at + step_at; they are zeros if a component of row_edges + step_edges is negative.
  std::string row, step;
  bool edges_of_taps = false;  // step_edges is the same for all terms of a tap
  bool has_edges = false;      // some are zeros
  // Taps of the innermost line of the window, if the place of each is that of the tap before one row of C further on; and `row`
  // for m of lines that are line - 1 longer. 1: no such taps.
  std::int64_t line = 1;
  std::string long_row;
};

GpuLoad load_of_a(const ContractionView& view);
GpuLoad load_of_b(const ContractionView& view);
// The same of one element.
std::string element_of_a(const ContractionView& view);
std::string element_of_b(const ContractionView& view);

}  // namespace oclc

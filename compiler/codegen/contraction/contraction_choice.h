// Which template computes a contraction on a CPU, on which tiles, and how it reads its operands.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/codegen/contraction/pack.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/contraction/tiling.h"

namespace oclc {

// The operand that a work-item first copies into local memory, in the order of its inner loop; none: both are read in place.
enum class LocalCopy { none, a, b };

struct ContractionChoice {
  LocalCopy local_copy = LocalCopy::none;
  ContractionTiles tiles;
  std::optional<PackedOperand> constant_b;  // B is constant and packed into panels at compile time
  std::int64_t panel_width = 0;             // columns of a tile
  int row_lanes = 0;  // of a copy of A whose rows are innermost: the vectors that fill it; 0: terms of a row are neighbours
  bool copies_panels = false;  // of B, beside such a copy of A

  std::string template_name() const;
};

// Where B's elements lie, if it is a constant read through strides.
std::optional<PackedOperand> constant_b_layout(const ContractionView& view, const std::vector<Buffer>& buffers);
// Nothing where no template can read the operands.
std::optional<ContractionChoice> choose_contraction(const ContractionView& view, const std::vector<Buffer>& buffers,
                                                    const Target& target);

}  // namespace oclc

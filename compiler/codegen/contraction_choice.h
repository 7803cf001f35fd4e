// Which template computes a contraction on a CPU, on which tiles, and how it reads its operands.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/contraction_view.h"
#include "compiler/codegen/pack.h"
#include "compiler/codegen/tiling.h"

namespace oclc {

// Longest chain of fused multiply-adds where sums are careful: longer ones are added up from pieces, which divides their
// rounding error.
inline constexpr std::int64_t kLongestChain = 64;
// The longest chain on a CPU: sums of pieces do not fit registers beside the pieces, and adding to them takes time, so that
// chains are longer where the target does not ask for careful sums.
std::int64_t longest_chain(const Target& target);
// Whether weights of so many bytes come from memory for every product: the first of many row tiles would wait for a panel, and
// the others ask for nothing. Where registers are few, those that the second-level cache holds come soon enough.
bool asks_a_panel_ahead(const Target& target, std::int64_t bytes);
// Rows of a packed panel by which weights are asked for ahead of their use, or 0 for never: by the tile of rows that meets them
// first, so that memory answers while those before are multiplied, and by the others, whose weights the second-level cache
// holds.
struct RowsAhead {
  std::int64_t first = 0, later = 0;
};
RowsAhead prefetch_rows(const Target& target, std::int64_t rows, std::int64_t panel_width);

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

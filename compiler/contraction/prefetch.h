// How far ahead packed weights are prefetched on a CPU, and how long its chains of multiply-adds are.
#pragma once
#include <cstdint>

#include "compiler/targets/target.h"

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

}  // namespace oclc

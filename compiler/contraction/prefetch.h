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
// Whether the first row tile prefetches a whole panel of B ahead: weights of `bytes` bytes are read from memory in each run,
// and it would stall on each panel, while later row tiles hit the cache. Where registers are few, weights that the second-level
// cache holds need none.
bool prefetches_panel(const Target& target, std::int64_t bytes);
// Prefetch distance in rows of a packed panel, 0 for no prefetch: of the row tile that reads the panel first, whose loads from
// memory overlap the multiply-adds on the rows before, and of later row tiles, which find it in the second-level cache.
struct PrefetchDistance {
  std::int64_t first = 0, later = 0;
};
PrefetchDistance prefetch_rows(const Target& target, std::int64_t rows, std::int64_t panel_width);

}  // namespace oclc

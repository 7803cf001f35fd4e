// Register tile and work split of a contraction on a CPU.
#pragma once
#include <cstdint>
#include <vector>

#include "compiler/ir/division.h"
#include "compiler/targets/tuning.h"

namespace oclc {

struct ContractionShape {
  std::int64_t groups = 1, rows = 1, columns = 1, depth = 1;  // C[groups, rows, columns] sums over depth = taps * inner
  std::int64_t row_bytes = 4;                                 // of A that one row brings into the cache
  // Where symbols make `groups` or `rows` stand for any number: what they are if each symbol is one. A split suits both.
  std::int64_t least_groups = 0, least_rows = 0;
  bool fresh_columns = false;  // B's panels come from memory, asked for during the one before
};

struct ContractionTiles {
  int rows = 6, vectors = 4;   // register tile: rows x (vectors * vector width)
  std::int64_t row_tiles = 1;  // of a work-item
  std::int64_t panels = 1;     // of a work-item
  bool rows_fastest = true;    // neighbouring work-items share panels of B
};

// Whether the columns fill one panel of so many vectors, but for half of its last one or more. With 512 bits half a vector
// multiplies in half of the time where a vector takes two passes, and is no slower elsewhere.
bool half_ends_panel(std::int64_t columns, std::int64_t vectors, const Target& target);

// The tile and split with the least estimated time: tails, port and latency limits of the inner loop, cache traffic and the
// makespan over the cores, or what was timed for "cpu_tiles groups rows columns depth row_bytes max_rows": the five members of
// ContractionTiles. Widths are of `target`. Deterministic.
ContractionTiles choose_tiles(const ContractionShape& shape, const Target& target, int max_rows = 12);
// What may be timed for that key: each register tile that the target has room for, in a few splits.
std::vector<TunedChoice> tile_choices(const ContractionShape& shape, const Target& target, int max_rows);

}  // namespace oclc

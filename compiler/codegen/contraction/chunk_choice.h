// How much of a contraction is copied at a time (contraction_chunks.h).
#pragma once
#include <optional>

#include "compiler/codegen/contraction/contraction_choice.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/targets/target.h"

namespace oclc {

struct ChunkTiles {
  int rows = 6, vectors = 2;               // register tile: rows x (vectors * vector width)
  std::int64_t row_tiles = 1, panels = 1;  // of a work-item
  std::int64_t copied_tiles = 1;           // row tiles of A that are copied at a time
  std::int64_t terms = 64, taps = 1;       // of a chunk: terms of one tap, or whole taps
  int lanes = 1;                           // of the vectors that copy A
  bool rows_innermost = false;             // vectors of A's rows, not of its terms
  bool in_place = false;                   // A is not copied
  bool constant_a = false;                 // A is packed at compile time, tile after tile
};

// Longest chain of fused multiply-adds within a chunk. Where registers are many, chunks of 64 terms are the shorter wait for
// copies.
std::int64_t longest_chain_of_chunk(const Target& target);

// Nothing where `choice`, another template that computes it (null: none does), is as fast.
std::optional<ChunkTiles> choose_chunks(const ContractionView& view, const ContractionChoice* choice, const Target& target);
// Beside a left operand that is a constant; nothing for few rows, columns or terms, and where B's columns are no vectors.
std::optional<ChunkTiles> choose_chunks_beside_panels(const ContractionView& view, const Target& target);

// Vectors of `width` along the axis hold what `loads` computes.
bool takes_vectors(const Kernel& loads, const Axis& axis, int width);
// Cycles of one that is copied.
double cycles_of_vector(const Kernel& loads);
// A load goes along the axis in steps of one element.
bool has_neighbours(const Kernel& loads, const Axis& axis);

}  // namespace oclc

// Contractions on CPUs with few vector registers whose operands are both given at run time: chunks of terms of both are copied
// (contraction_chunks_cpu.cl).
#pragma once
#include <optional>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction_choice.h"
#include "compiler/codegen/contraction_view.h"
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
};

// Nothing where `choice`, another template that computes it (null: none does), is as fast.
std::optional<ChunkTiles> choose_chunks(const ContractionView& view, const ContractionChoice* choice, const Target& target);
std::optional<GeneratedKernel> generate_chunks(const ContractionView& view, const ContractionChoice* choice,
                                               const Target& target);

}  // namespace oclc

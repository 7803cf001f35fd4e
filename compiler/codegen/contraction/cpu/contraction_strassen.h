// Products of many rows by Strassen's seven products of halves instead of eight, where the contract of precision leaves room
// for their rounding errors. Template contraction_strassen_cpu.cl.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_choice.h"
#include "compiler/schedule/pass.h"

namespace oclc {

// The strategy of a contraction that is computed so.
inline constexpr std::string_view kStrassen = "strassen";

struct StrassenShape {
  std::int64_t rows = 1, columns = 1, inner = 1;
  bool rows_innermost = false;   // vectors of the left operand's rows, not of its terms
  bool vectors_of_terms = true;  // of one of the operands: chunks are whole vectors
  double compute_of_left = 0;    // cycles of a vector of pairs of rows and terms that are computed
  double copy_of_right = 0;      // cycles a vector, where the right operand is given at run time; else 0
};

// A register tile of pairs, pairs of terms of a chunk, row tiles and panels of a work-item, and the cycles of a core.
struct StrassenTiles {
  int rows = 8, vectors = 3;
  std::int64_t terms = 128, row_tiles = 8, panels = 1;
  double cycles = 0;
};

// Nothing where no tile fits.
std::optional<StrassenTiles> choose_strassen_tiles(const StrassenShape& shape, const Target& target);

// Gives this strategy to the contractions that gain most by it, as long as the squares of their errors, relative to the
// results, add up to at most the square of half the budget. They have constant weights and rows enough to hide their way from
// memory.
void multiply_halves(Schedule& schedule, const ScheduleContext& context);

// Code for a contraction of that strategy; nothing for others.
std::optional<GeneratedKernel> generate_strassen(const ContractionView& view, const std::vector<Buffer>& buffers,
                                                 const Target& target);

}  // namespace oclc

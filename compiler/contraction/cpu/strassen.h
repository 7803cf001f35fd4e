// Products of many rows by Strassen's seven products instead of eight: template contraction_strassen_cpu.cl.
#pragma once
#include <optional>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

struct StrassenShape {
  std::int64_t rows = 1, columns = 1, inner = 1;
  bool rows_innermost = false;   // vectors of the left operand's rows, not of its terms
  bool vectors_of_terms = true;  // of one of the operands: chunks are whole vectors
  double compute_of_left = 0;    // cycles of a vector of pairs of rows and terms that are computed
  double copy_of_right = 0;      // cycles a vector, where the right operand is given at run time; else 0
};

// Quadrants of an operand, and products of them.
inline constexpr std::int64_t kStrassenBlocks = 4, kStrassenProducts = 7;

// How vectors of both operands are had; nothing where there are none, and for groups, taps and open sizes.
std::optional<StrassenShape> strassen_shape(const Problem& problem, const Target& target);
// Nothing where no tile fits.
std::optional<StrassenTiles> choose_strassen_tiles(const StrassenShape& shape, const Target& target);
// Rows of a bundle of A's rows: whole vectors and whole tiles.
std::int64_t bundle_rows(const StrassenTiles& tiles, const Target& target);

// What Strassen's products gain over the other templates: cycles of a core, and the root of the mean square of the errors that
// they add, over that of the results.
struct StrassenGain {
  double cycles = 0, error = 0;
};
// Nothing where they gain nothing by estimate, or have not been measured to.
std::optional<StrassenGain> strassen_gain(const Problem& problem, const Target& target);

}  // namespace oclc

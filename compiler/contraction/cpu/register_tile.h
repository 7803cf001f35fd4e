// A register tile of a product on a CPU: `rows` sums of `vectors` vectors each, multiplied and added step by step.
#pragma once
#include <algorithm>
#include <cstdint>

#include "compiler/targets/target.h"

namespace oclc {

// Sums, the vectors of B and one element of A.
inline bool fits_registers(std::int64_t rows, std::int64_t vectors, const Target& target) {
  return rows * vectors + vectors + 1 <= target.vector_registers;
}

// Cycles of a step: two vectors are multiplied and added in a cycle, two loaded, and a sum waits four cycles for its last term.
// `multiplied` of the vectors are no padding.
inline double tile_step_cycles(int rows, int vectors, double multiplied) {
  return std::max({rows * multiplied / 2.0, (rows + vectors) / 2.0, 4.0});
}
inline double tile_step_cycles(int rows, int vectors) { return tile_step_cycles(rows, vectors, vectors); }

// Of a core whose two units multiply and add a vector each in a cycle.
inline double cycles_per_second(const Target& target) {
  return target.flops / (4.0 * target.vector_width * std::max(1, target.compute_units));
}

}  // namespace oclc

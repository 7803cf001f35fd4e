// How a loop nest's iteration space is cut into tiles, one a work-item of a CPU, and how many loop iterations a tile takes.
#pragma once
#include <optional>

#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

struct LoopTiles {
  std::int64_t rows = 1;   // of a tile: points of all parallel axes but the vector axis
  std::int64_t chunk = 0;  // of a tile: elements of the vector axis; 0: all of it
};

// `vector_axis` is an index into Kernel::axes, if one is computed in vectors. CompileError if one element takes more loop
// iterations than the target makes.
LoopTiles choose_loop_tiles(const Kernel& kernel, std::optional<std::size_t> vector_axis, const Target& target);
// CompileError if an element of the iteration space takes more loop iterations than the target makes.
void check_loop_iterations(const Kernel& kernel, const Target& target);

// Vectors that lie side by side in a strip of columns whose sums are computed together, `inner` columns in all: where registers
// are many so many that a row is read in long pieces.
int strip_vectors(const Kernel& kernel, const Expr& inner, const Target& target);

// Whether results go past the caches: every one is large, and none is what was read, which is in the cache when it is stored.
bool streams_results(const Kernel& kernel);

// Points of all parallel axes but the vector axis.
Expr rows_besides(const Kernel& kernel, std::optional<std::size_t> vector_axis);

}  // namespace oclc

// Register blocking of a row: a strip is a register tile of several vectors, unrolled, each with its own accumulators.
#pragma once
#include <string>

#include "compiler/codegen/loops/loop_tiles.h"
#include "compiler/codegen/loops/vector_axis.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

struct Strips {
  int vectors = 0;  // of a strip; 0: vectors one after another
  // No remainder: where strips do not fill the row, the last one ends with it and computes columns of the one before again. A
  // remainder has one accumulator, whose latency each of its terms waits for.
  bool overlap = false;
};

// `inner`: the vector axis, in vectors of the kernel's width; wants has_strips().
Strips choose_strips(const Kernel& kernel, const VectorAxis& vector, const Axis& inner, const LoopTiles& tiles,
                     const Target& target);

// The strips from column `begin` to `end`, C texts. What strips leave begins at the variable `strip` unless they overlap or
// fill the row.
void emit_strips(Emitter& e, const Kernel& kernel, const VectorAxis& vector, const Axis& inner, const Strips& strips,
                 const std::string& begin, const std::string& end);

}  // namespace oclc

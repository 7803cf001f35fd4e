// Along which axis a loop nest computes on vectors, on a CPU, and how it adds up.
#pragma once
#include <optional>

#include "compiler/codegen/loops/block_transpose.h"
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// At most one of `parallel` and `reduction` is given.
struct VectorAxis {
  std::optional<std::size_t> parallel;  // index into Kernel::axes: lanes are neighbouring elements of the results
  bool reduction = false;               // lanes are neighbouring terms of the innermost reduction axis
  int width = 1;                        // widest vector; 1 with `parallel`: the block of a transposition, element by element
  bool carries_each =
      false;  // sums of numbers, not of products, carry what rounding takes from each term: a GPU waits for memory
  std::optional<TransposedLoad> transposed;  // with `parallel` and a width of 1
};

// May split an axis of the kernel: see block_transpose.
VectorAxis choose_vector_axis(Kernel& kernel, const Target& target);

}  // namespace oclc

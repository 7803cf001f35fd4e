// Which integer type the indices of a kernel's code have: int where all of them fit, since it is faster on every device.
#pragma once
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// True if an address, an index value or the number of points of a space with these extents may not fit an int. Buffers whose
// size depends on symbols without bound count as small enough: no session runs with sizes that make one larger.
// `for_any_size`: no buffer counts as small enough. Parts of megakernels on a GPU are so: with loops of int a token of
// gpt2 took 0.58 ms on an H200 and with loops of long 0.39, perhaps since the compiler unrolls those and too few groups run at
// once.
bool needs_wide_index(const Kernel& kernel, const std::vector<Expr>& extents, bool for_any_size = false);
bool needs_wide_index(const Kernel& kernel, bool for_any_size = false);  // for the kernel's own parallel axes
// i64 index values and constants that fit into an int become i32, where they are only compared or converted to float.
void narrow_indices(Kernel& kernel);

}  // namespace oclc

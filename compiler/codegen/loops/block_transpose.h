// Order of a copy between layouts whose fastest axes differ.
#pragma once
#include "compiler/kernels/kernel.h"

namespace oclc {

// Splits the axis along which all stores have unit stride, but a load a long one, into blocks and `lanes` elements, and orders
// the rest by that load's strides: a block then reads each of its cache lines once. A stride is long from `lanes` elements on;
// with `reads_lines_once` also where another axis runs between the elements, as taps do between channels of a filter. Returns
// whether it did; the last axis is then the one within the blocks. For kernels without reductions; numbers and extents of the
// iteration space stay the same.
bool block_transpose(Kernel& kernel, std::int64_t lanes, bool reads_lines_once);

// A load that runs along another axis than the results do, in squares of `width` x `width` elements which vectors transpose.
struct TransposedLoad {
  NodeId node = -1;
  std::size_t along = 0;  // index into Kernel::axes: the load's neighbours, an axis of `width`; the last axis is the results'
  int width = 1;
};

// After block_transpose: splits the axis that the load runs along, if squares of vectors compute the kernel; else changes
// nothing.
std::optional<TransposedLoad> transposed_load(Kernel& kernel, int width);

}  // namespace oclc

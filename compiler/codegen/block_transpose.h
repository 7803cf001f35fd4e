// Order of a copy between layouts whose fastest axes differ.
#pragma once
#include "compiler/kernels/kernel.h"

namespace oclc {

// Splits the axis along which all stores have unit stride, but a load a long one, into blocks and `lanes` elements, and orders
// the rest by that load's strides: a block then reads each of its cache lines once. Returns whether it did; the last axis is
// then the one within the blocks. For kernels without reductions; numbers and extents of the iteration space stay the same.
bool block_transpose(Kernel& kernel, std::int64_t lanes);

}  // namespace oclc

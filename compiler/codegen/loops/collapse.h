// Merges neighbouring axes that every index uses as one: [N, C, H, W] becomes one flat axis where nothing tells them apart.
#pragma once
#include "compiler/kernels/kernel.h"

namespace oclc {

// Replaces axes `at` and `at + 1` of `axes` (the kernel's parallel or reduction axes) by one if no index needs a division then.
// Not for kernels with a contraction.
void collapse_axes(Kernel& kernel);

}  // namespace oclc

// What a launch of horizontal_fusion holds at most, which ragged_groups reckons with.
#pragma once
#include <cstddef>

namespace oclc {

// Kernels of one launch; its pointers, as many as every device takes.
inline constexpr std::size_t kMostFusedKernels = 24, kMostFusedPointers = 48;

}  // namespace oclc

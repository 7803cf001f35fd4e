// Filters of Winograd's convolution are four times larger when they are transformed, and may lie in a file as they are. A run
// of them, see quantized_constants.h, is a panel: the constants U[window * window][channels][width] are G g G^T of the filters
// g, computed in double and rounded. Stored are
//
//   G[window][taps] as f64 | g[taps * taps][channels][lanes] as f32
//
// Columns of the panel past `lanes` are 0.
#pragma once
#include <cstddef>

#include "runtime/package/quantized_constants.h"

namespace oclc::package {

// Throws Error{corrupt} where no panel is of such sizes.
void check_filters(const QuantizedRun& run);
// Writes the constants of a run that has been checked.
void transform_filters(const QuantizedRun& run, const std::byte* stored, std::byte* to);

}  // namespace oclc::package

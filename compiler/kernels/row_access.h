// Rows of a kernel's iteration space, and which rows of a value it stores and reads: what loops over row tiles are planned by.
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/kernels/kernel.h"

namespace oclc {

// The images that a kernel goes through first, if it goes through rows next: 1 for a single one.
std::int64_t leading_images(const Kernel& k);

// The outermost axis, or that behind the images, if there are others.
const Axis* row_axis(const Kernel& k, std::int64_t images);

// Floats of a row where a store puts row after row, image after image.
std::optional<std::int64_t> slice_of(const Store& s, const Kernel& k, std::int64_t images);

// Rows of a value that a load reads, for the kernel's row r: stride * r + first .. stride * r + last.
struct RowReads {
  std::int64_t stride = 0, first = 0, last = 0;
};
// Of a value of `rows` rows of `slice` floats an image.
std::optional<RowReads> reads_of(const ScalarNode& load, const Kernel& k, std::int64_t images, std::int64_t slice,
                                 std::int64_t rows);

}  // namespace oclc

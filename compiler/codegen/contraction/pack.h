// Packing of constant right operands into panels, at compile time.
#pragma once
#include <cstring>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Where element (group, tap, inner, column) of a constant operand lies: base + the products with the strides.
struct PackedOperand {
  std::int64_t base = 0, group_stride = 0, inner_stride = 0, column_stride = 0;
  std::vector<std::int64_t> tap_offsets;  // one per tap
};

// Element `at` of a constant, fast where it is a float already.
inline float float_at(const HostTensor& source, std::int64_t at) {
  if (source.dtype() != DType::f32) return static_cast<float>(source.at(at));
  float x = 0;
  std::memcpy(&x, source.data() + at * 4, 4);
  return x;
}

// [group][column panel][tap][inner][panel width], surplus columns 0; of the source's type. Throws nothing.
HostTensor pack_panels(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                       std::int64_t inner, std::int64_t panel_width);

// [group][column][tap][inner], each column's elements padded with 0 to `pitch`; of the source's type. Throws nothing.
HostTensor pack_columns(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                        std::int64_t inner, std::int64_t pitch);

}  // namespace oclc

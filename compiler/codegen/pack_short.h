// Packing of constant right operands in 20 bits a number, at compile time: B of templates/contraction_short_cpu.cl.
#pragma once
#include <optional>

#include "compiler/codegen/pack.h"

namespace oclc {

struct ShortLayout {
  std::int64_t groups = 1, columns = 1, inner = 1, panel_width = 1;

  static constexpr std::int64_t kStep = 8, kBlock = 256;   // STEP, BLOCK
  static constexpr std::int64_t kLargest = (1 << 19) - 1;  // of an integer that stands for an element
};

// Scales and integers, typed as floats. An element is rounded to the nearest multiple of its column's scale in the block, the
// largest of which is there kLargest times the scale. Nothing where an element is not finite or a scale would not be a normal
// number.
std::optional<HostTensor> pack_short(const HostTensor& source, const PackedOperand& where, const ShortLayout& layout);

// The rounding of elements relative to them, both as the root of the mean square over some of the columns. Of a product of
// independent terms it is the error as well.
double short_error(const HostTensor& source, const PackedOperand& where, const ShortLayout& layout);

}  // namespace oclc

// Packing of constant right operands in 20 or 24 bits a number, at compile time: B of templates/contraction_quantized_cpu.cl.
#pragma once
#include <optional>

#include "compiler/codegen/contraction/pack.h"

namespace oclc {

struct ShortLayout {
  std::int64_t groups = 1, columns = 1, inner = 1, panel_width = 1;
  int lower_bits = 4;  // LOWER

  static constexpr std::int64_t kBlock = 256;  // BLOCK
  int bits() const { return 16 + lower_bits; }
  std::int64_t step() const { return 32 / lower_bits; }                           // STEP
  std::int64_t largest() const { return (std::int64_t{1} << (bits() - 1)) - 1; }  // of an integer that stands for an element
};

// Whether every element is finite and every scale zero or a normal number.
bool has_short_form(const HostTensor& source, const PackedOperand& where, const ShortLayout& layout);

// Scales and integers, typed as floats. An element is rounded to the nearest multiple of its column's scale in the block, the
// largest of which is there largest() times the scale. Nothing where an element is not finite or a scale would not be a normal
// number.
std::optional<HostTensor> pack_short(const HostTensor& source, const PackedOperand& where, const ShortLayout& layout);

// The rounding of elements relative to them, both as the root of the mean square over some of the columns. Of a product of
// independent terms it is the error as well.
double short_error(const HostTensor& source, const PackedOperand& where, const ShortLayout& layout);

}  // namespace oclc

// Packing of constant right operands whose numbers are integers of 8 or 4 bits times a scale, as quantised models have them, at
// compile time: B of templates/contraction_quantized_cpu.cl.
#pragma once
#include <optional>

#include "compiler/codegen/contraction/pack.h"

namespace oclc {

// An operand's columns by blocks of terms: (integer + offset) * scale, integers of `bits` bits.
struct NarrowForm {
  int bits = 8;
  std::int64_t block = 256;  // terms of a scale
  bool offsets = false;      // some are not 0
};

// Of the fewest bits, and among these of the longest blocks; nothing where an element has no such form.
std::optional<NarrowForm> narrow_form(const HostTensor& source, const PackedOperand& where, std::int64_t groups,
                                      std::int64_t columns, std::int64_t inner);

// Bytes, in that form.
HostTensor pack_narrow(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                       std::int64_t inner, std::int64_t panel_width, const NarrowForm& form);

}  // namespace oclc

// Packing of constant right operands as integers of three bytes, at compile time.
#pragma once
#include <optional>

#include "compiler/codegen/contraction/pack.h"

namespace oclc {

// B of templates/digits_amx.cl.
struct PackedDigits {
  HostTensor digits;  // i8 [group][panel of 32 columns][tap][step of 64 inner][digit][2][16][16 columns][4], padded with 0
  HostTensor units;   // f32 [group][panel][32 columns]: 65536 times the value of a column's last digit
};

// Whether integers are no poor copy: no infinity or NaN, and no columns whose largest element is many times their root mean
// square.
bool has_digits(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
                std::int64_t inner);

// Nothing where integers would be a poor copy: an infinity or NaN, or columns whose largest element is many times their root
// mean square.
std::optional<PackedDigits> pack_digits(const HostTensor& source, const PackedOperand& where, std::int64_t groups,
                                        std::int64_t columns, std::int64_t inner);

}  // namespace oclc

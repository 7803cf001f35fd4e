// Packing of constant right operands as parts of bfloat16, at compile time.
#pragma once
#include <optional>

#include "compiler/codegen/contraction/pack.h"

namespace oclc {

// Whether elements have such parts.
bool has_parts(const HostTensor& source, const PackedOperand& where, std::int64_t groups, std::int64_t columns,
               std::int64_t inner);

// [group][panel of 32 columns][tap][step of 32 inner][part][2][16][16 columns][2], padded with 0: B of
// templates/functions/tiles_amx.cl, of type bf16. Nothing if an element has no such parts: infinities, NaN, and what rounds to
// infinity.
std::optional<HostTensor> pack_parts(const HostTensor& source, const PackedOperand& where, std::int64_t groups,
                                     std::int64_t columns, std::int64_t inner, int parts);

// [panel of 32 columns][step of 32 terms][part][2][16][16 columns][2]: the same of a single group whose terms are all taps of
// all channels, channels outermost.
std::optional<HostTensor> pack_patch_parts(const HostTensor& source, const PackedOperand& where, std::int64_t columns,
                                           std::int64_t channels, int parts);

}  // namespace oclc

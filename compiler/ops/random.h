// The counter-based generator: the same numbers on the host and on every device, in any order.
#pragma once
#include <cstdint>

namespace oclc {

// First word of Philox4x32-10 of the counter (index, step, 0, 0) under the key (stream, 0): Salmon, Moraes, Dror and Shaw,
// "Parallel Random Numbers: As Easy as 1, 2, 3", 2011. Device code: oclc_random_bits of templates/prelude.cl.
std::uint32_t random_bits(std::uint32_t index, std::uint32_t step, std::uint32_t stream);

// The key of stream `number` (a dropout layer, a parameter) under a seed: seed + number * kStreamStep, modulo 2^32. Streams
// of one seed have distinct keys.
constexpr std::uint32_t kStreamStep = 0x9E3779B9;

// Dropout of this ratio keeps the elements whose bits are less: (1 - ratio) * 2^32, rounded, at most 2^32 - 1.
std::uint32_t dropout_limit(double ratio);

}  // namespace oclc

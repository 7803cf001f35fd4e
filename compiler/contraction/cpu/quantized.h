// Products of few rows whose weights come from memory once a run, in 20 or 24 bits a number by blocks, or in the 4 or 8 that
// they have: template contraction_quantized_cpu.cl.
#pragma once
#include <optional>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

// Of an element of the weights under such a strategy.
constexpr int quantized_bits(StrategyId strategy) {
  return strategy == StrategyId::quantized_4    ? 4
         : strategy == StrategyId::quantized_8  ? 8
         : strategy == StrategyId::quantized_20 ? 20
                                                : 24;
}
// Whether weights can be stored so: constant floats that `fma` packs and reads in place, for few rows.
bool can_quantize(const Problem& problem, const std::optional<FmaTiles>& fma);
// Of all weights, as floats.
std::int64_t weight_bytes(const Problem& problem);
// Seconds by which block-quantized weights of `bits` bits beat float ones by estimate; 0 where the gain is too small.
double saved_by_bits(const Problem& problem, int bits, const Target& target);
QuantizedTiles choose_quantized(const Problem& problem, int bits, const Target& target);
double quantized_seconds(const Problem& problem, int bits, const Target& target);

}  // namespace oclc

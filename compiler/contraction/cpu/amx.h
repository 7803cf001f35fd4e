// Contractions on the tile units of x86 processors as the table of strategies asks for them; amx_tiles.h has the choosers.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/contraction/strategy.h"

namespace oclc {

// What the geometry of a window is there, and of patches of few channels; nothing where the templates have none.
std::optional<AmxWindowProduct> amx_window_product(const Problem& problem);
std::optional<AmxPatchProduct> amx_patch_product(const Problem& problem);
// A product of rows for each tap.
AmxProduct amx_product(const Problem& problem);
// Two operands of run time; nothing where no vectors copy them.
std::optional<AmxPairProduct> amx_pair_product(const Problem& problem);

// Estimates of all ways to compute a product with a constant right operand; nothing for others.
std::optional<StrategyCase::Amx> amx_estimates(const Problem& problem, const Target& target);

}  // namespace oclc

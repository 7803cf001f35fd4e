// The plans of the table's rows for CPUs.
#pragma once
#include "compiler/contraction/strategy.h"

namespace oclc {

// Whether the tiles copy A element by element: neither its terms nor its rows are neighbours in memory.
bool gathers_a(const Problem& problem, const FmaTiles& tiles, const Target& target);
// Whether the innermost loop over results is one of vectors: nothing in it asks whether an element is padding.
bool loops_are_vectors(const Problem& problem);
// Of loops without a template.
double loops_seconds(const Problem& problem, const Target& target);
// Of fused multiply-adds that take `fma_seconds` without the copy of A, with it where it is made element by element, or of the
// loops that do without.
double seconds_without_tiles(const StrategyCase& c, double fma_seconds);

Planned plan_winograd(const StrategyCase& c, StrategyId strategy);
Planned plan_quantized(const StrategyCase& c, StrategyId strategy);
Planned plan_strassen(const StrategyCase& c, StrategyId strategy);
Planned plan_amx_rows(const StrategyCase& c, StrategyId strategy);
Planned plan_amx_window(const StrategyCase& c, StrategyId strategy);
Planned plan_amx_patches(const StrategyCase& c, StrategyId strategy);
Planned plan_amx_limbs(const StrategyCase& c, StrategyId strategy);
Planned plan_amx_limb_window(const StrategyCase& c, StrategyId strategy);
Planned plan_amx_chunks(const StrategyCase& c, StrategyId strategy);
Planned plan_chunks_constant_a(const StrategyCase& c, StrategyId strategy);
Planned plan_chunks(const StrategyCase& c, StrategyId strategy);
Planned plan_few_rows(const StrategyCase& c, StrategyId strategy);
Planned plan_dots(const StrategyCase& c, StrategyId strategy);
Planned plan_window(const StrategyCase& c, StrategyId strategy);
Planned plan_fma(const StrategyCase& c, StrategyId strategy);

}  // namespace oclc

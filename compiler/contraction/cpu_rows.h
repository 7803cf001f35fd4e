// The plans of the table's rows for CPUs.
#pragma once
#include "compiler/contraction/strategy.h"

namespace oclc {

Planned plan_winograd(const Case& c, StrategyId strategy);
Planned plan_quantized(const Case& c, StrategyId strategy);
Planned plan_strassen(const Case& c, StrategyId strategy);
Planned plan_amx_rows(const Case& c, StrategyId strategy);
Planned plan_amx_window(const Case& c, StrategyId strategy);
Planned plan_amx_patches(const Case& c, StrategyId strategy);
Planned plan_amx_limbs(const Case& c, StrategyId strategy);
Planned plan_amx_limb_window(const Case& c, StrategyId strategy);
Planned plan_amx_chunks(const Case& c, StrategyId strategy);
Planned plan_chunks_constant_a(const Case& c, StrategyId strategy);
Planned plan_chunks(const Case& c, StrategyId strategy);
Planned plan_few_rows(const Case& c, StrategyId strategy);
Planned plan_dots(const Case& c, StrategyId strategy);
Planned plan_window(const Case& c, StrategyId strategy);
Planned plan_fma(const Case& c, StrategyId strategy);

}  // namespace oclc

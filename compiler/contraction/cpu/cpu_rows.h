// The plans of the table's rows for CPUs.
#pragma once
#include "compiler/contraction/strategy.h"

namespace oclc {

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

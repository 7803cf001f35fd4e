// The plans of the table's rows for GPUs.
#pragma once
#include "compiler/contraction/strategy.h"

namespace oclc {

// The tiles of a GPU's launch: those of sm_90a's matrix units where these gain, and those of the text for other devices.
GpuChoice choose_gpu(const Problem& problem, const Target& target);

Planned plan_small_gemm(const StrategyCase& c, StrategyId strategy);
// A row for GPUs of the strategy that choose_gpu() comes to.
Planned plan_gpu(const StrategyCase& c, StrategyId strategy);
// Kernels that write an operand of another product as this wants it.
Planned plan_pack_b(const StrategyCase& c, StrategyId strategy);
Planned plan_lay_out_a(const StrategyCase& c, StrategyId strategy);

}  // namespace oclc

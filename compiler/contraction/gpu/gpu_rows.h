// The plans of the table's rows for GPUs.
#pragma once
#include "compiler/contraction/strategy.h"

namespace oclc {

// The ways in which a GPU may compute a product, the best first: tiles of sm_90a's matrix units where these gain, with those of
// the text for other devices. Under a contract of rounded products the more exact ones compete. `losers`: all others as well.
std::vector<GpuForm> gpu_forms(const Problem& problem, const Target& target, Losers losers);

// Of loops without a template for two operands of run time, the right one read along its columns, where such launches were
// measured.
std::optional<double> short_loops_seconds(const Problem& problem, const Target& target);

Planned plan_small_gemm(const StrategyCase& c, StrategyId strategy);
// The first form of the row's strategy, and tiles of its others.
Planned plan_gpu(const StrategyCase& c, StrategyId strategy);
// Kernels that write an operand of another product as this wants it.
Planned plan_pack_b(const StrategyCase& c, StrategyId strategy);
Planned plan_lay_out_a(const StrategyCase& c, StrategyId strategy);

}  // namespace oclc

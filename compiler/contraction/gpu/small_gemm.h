// Products that one launch of a GPU, or a part of one, is over with soon: template contraction_small_gpu.cl.
#pragma once
#include <optional>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

// How they are computed: of floats, or of operands rounded to 16 bits where the right one is a constant.
struct SmallGemmRegime {
  StrategyId strategy;
  bool halves;
  double device_per_host;  // in entries whose kernels take at most so many times what the host takes to launch them
  double bytes;            // of operands that a compute unit reads in a cycle
  // A small product takes at most so many launches' time, and one more where fewer tiles of 64 x 64 than the device has compute
  // units would need sums in parts, which are a launch more.
  double launches;
};

// The regime that a strategy names; null for others.
const SmallGemmRegime* small_gemm_regime(StrategyId strategy);

// Whether a target has the units for them, by its contract.
bool has_small_gemm(const Target& target);
// The tiles of least time. `is_asked`: whatever that is; otherwise nothing where it is more than a few launches'.
std::optional<ShortTiles> choose_small_gemm(const SmallGemm& product, const SmallGemmRegime& regime, const Target& target,
                                            bool is_part, bool is_asked);

}  // namespace oclc

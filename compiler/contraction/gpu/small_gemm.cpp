#include "compiler/contraction/gpu/small_gemm.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr int kSubGroups = 8, kTermsOfStep = 16, kSubGroupRows = 16;
constexpr std::int64_t kLargeTile = 64;
// Operands of four neighbours in k each: their loads that are under way together fill so many vectors.
constexpr int kVectorsAhead = 16, kVectorsOfPart = 12;

// Measured on an H200. Three products of floats are faster by the large templates where the device has more work than the host;
// halves are so as long as all compute units share what the second-level cache gives.
constexpr SmallGemmRegime kRegimes[] = {{StrategyId::small_gemm, false, 1, 64, 1.5},
                                        {StrategyId::small_gemm_f16, true, 3.2, 28, 6}};

double cycles_of(const SmallGemm& e, ShortTiles& t, const Target& target, const SmallGemmRegime& regime, int ahead) {
  const std::int64_t tiles = e.groups * ceil_div(e.rows, t.rows) * ceil_div(e.columns, t.columns), units = target.compute_units;
  const std::int64_t pieces = regime.halves ? 2 : 1, terms = kTermsOfStep * pieces,
                     steps = ceil_div(ceil_div(e.depth, terms), t.sharers), vectors = 2 * pieces + t.warp_columns / 8,
                     most = std::max<std::int64_t>(1, ahead / vectors), batches = ceil_div(steps, most);
  t.ahead = static_cast<int>(ceil_div(steps, batches));
  const auto depth = static_cast<double>(batches * t.ahead * t.sharers * terms);
  const double work =
      std::max(t.rows * t.columns * depth / cost::kSplitTermsPerCycle,
               (t.rows + t.columns / static_cast<double>(pieces)) * static_cast<double>(e.depth) * 4 / regime.bytes);
  return cost::kLaunchCycles +
         static_cast<double>(ceil_div(tiles, 2 * units)) *
             (static_cast<double>(batches) * cost::kLoadCycles + cost::kSmallTileCycles) +
         static_cast<double>(ceil_div(tiles, units)) * work;
}

}  // namespace

const SmallGemmRegime* small_gemm_regime(StrategyId strategy) {
  const auto* found =
      std::find_if(std::begin(kRegimes), std::end(kRegimes), [&](const SmallGemmRegime& r) { return r.strategy == strategy; });
  return found == std::end(kRegimes) ? nullptr : found;
}

bool has_small_gemm(const Target& target) {
  return target.multiplies_groups() && target.has_group_templates() && target.work_group == kSubGroups * 32;
}

std::optional<ShortTiles> choose_small_gemm(const SmallGemm& product, const SmallGemmRegime& regime, const Target& target,
                                            bool is_part, bool is_asked) {
  std::optional<ShortTiles> best;
  const std::int64_t large = product.groups * ceil_div(product.rows, kLargeTile) * ceil_div(product.columns, kLargeTile);
  const double launches = regime.launches + (large < target.compute_units ? 1 : 0);
  double least = is_asked ? std::numeric_limits<double>::infinity() : launches * target.launch_seconds * cost::kCyclesPerSecond;
  for (const int columns : {16, 32, 64}) {
    for (int sharers = 1; sharers <= kSubGroups; sharers *= 2) {
      ShortTiles t;
      t.columns = columns;
      t.warp_columns = std::min(columns, 32);
      t.sharers = sharers;
      t.halves = regime.halves;
      const int side = kSubGroups / sharers / (columns / t.warp_columns);
      if (side == 0) continue;
      t.rows = kSubGroupRows * side;
      const double cycles = cycles_of(product, t, target, regime, is_part ? kVectorsOfPart : kVectorsAhead);
      if (cycles >= least) continue;
      least = cycles;
      best = t;
      best->seconds = cycles / cost::kCyclesPerSecond;
    }
  }
  return best;
}

}  // namespace oclc

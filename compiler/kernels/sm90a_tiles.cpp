#include "compiler/kernels/sm90a_tiles.h"

#include <algorithm>

#include "compiler/ir/division.h"

namespace oclc {
namespace {

// Products at single precision on all units, what a step takes at least from its loads to its use, and a launch to get going.
constexpr double kFlops = 133e12, kStepSeconds = 0.9e-6, kStartSeconds = 2e-6;
constexpr int kStepDepth = 32;

// Efficiencies as measured on an H200.
constexpr Sm90aTiles kCandidates[] = {
    {2, 128, 16, 3, 1, 256, false, 0.65, {128, 128, 16, 8, 8}},
    {2, 64, 16, 5, 1, 256, false, 0.45, {128, 64, 16, 8, 4}},
    {1, 64, 16, 3, 2, 128, true, 0.35, {64, 64, 16, 4, 4}},
};

}  // namespace

double sm90a_seconds(const GpuProduct& p, const Sm90aTiles& t, const Target& target) {
  const std::int64_t units = std::max(1, target.compute_units), rows = std::int64_t{t.warpgroups} * 64;
  const auto waves = static_cast<double>(ceil_div(p.groups * ceil_div(p.rows, rows) * ceil_div(p.columns, t.columns), units));
  const auto steps = static_cast<double>(ceil_div(p.depth, kStepDepth));
  const double step =
      2.0 * static_cast<double>(rows) * t.columns * kStepDepth / (kFlops / static_cast<double>(units) * t.efficiency);
  return kStartSeconds + waves * steps * std::max(step, kStepSeconds);
}

std::optional<Sm90aTiles> choose_sm90a_tiles(const GpuProduct& product, const GpuTiles& rival, const Target& target) {
  if (!target.sm90a) return std::nullopt;
  std::optional<Sm90aTiles> best;
  // Where these units suit, mma.sync on the same units does not do better.
  Target plain = target;
  plain.matrix_unit = MatrixUnit::none;
  double least = kStartSeconds + gpu_product_seconds(product, rival, plain);
  for (const Sm90aTiles& candidate : kCandidates) {
    const double time = sm90a_seconds(product, candidate, target);
    if (time >= least) continue;
    least = time;
    best = candidate;
  }
  return best;
}

double best_gpu_seconds(const GpuProduct& product, const Target& target) {
  const GpuTiles plain = choose_gpu_tiles(product, target);
  const double least = gpu_product_seconds(product, plain, target);
  if (target.products == Products::fma) return least;
  const auto tiles = choose_sm90a_tiles(product, plain, target);
  return tiles ? std::min(least, sm90a_seconds(product, *tiles, target)) : least;
}

}  // namespace oclc

#include "compiler/contraction/gpu/gpu_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/contraction/cpu/amx_tiles.h"
#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

struct RatedTiles {
  GpuTiles tiles;
  double efficiency;  // share of the peak that many groups of such tiles reach
};

constexpr RatedTiles kCandidates[] = {
    {{128, 128, 16, 8, 8}, 0.80}, {{128, 128, 8, 8, 8}, 0.75}, {{128, 64, 16, 8, 8}, 0.70}, {{64, 128, 16, 8, 8}, 0.70},
    {{64, 64, 16, 8, 4}, 0.55},   {{64, 64, 16, 4, 4}, 0.50},  {{64, 32, 16, 4, 4}, 0.40},  {{32, 64, 16, 4, 4}, 0.40},
    {{32, 32, 16, 4, 4}, 0.30},   {{128, 16, 16, 4, 4}, 0.25}, {{16, 128, 16, 4, 4}, 0.25}, {{64, 16, 16, 4, 4}, 0.22},
    {{16, 64, 16, 4, 4}, 0.22},   {{8, 128, 16, 4, 4}, 0.15},  {{4, 128, 16, 4, 4}, 0.08},
};
// On a matrix unit: terms of a step.
constexpr int kMatrixStep = 32, kHalfStep = 16;

bool has_room(const GpuTiles& tiles, const Target& target) {
  return tiles.local_bytes() <= target.local_bytes && tiles.items() <= target.work_group;
}

TunedChoice numbers_of(const GpuTiles& t) { return {t.rows, t.columns, t.depth, t.item_rows, t.item_columns}; }

double unit_rate(const Target& target) {
  if (target.matrix_unit->operand != UnitNumber::tf32) return target.matrix_unit->rate / target.precision.bf16_products;
  return target.precision.splits_operands() ? cost::kMmaSplitRate : cost::kMmaRoundedRate;
}

// A compute unit multiplies its tiles, or waits for the steps of one: the longer of both counts.
struct TileSeconds {
  double busy, waiting;
};

TileSeconds seconds_of_size(const GpuProduct& p, const GpuTiles& t, const Target& target) {
  const auto same = [&](const RatedTiles& c) {
    return c.tiles.rows == t.rows && c.tiles.columns == t.columns && c.tiles.depth == t.depth &&
           c.tiles.item_rows == t.item_rows;
  };
  const auto known = std::find_if(std::begin(kCandidates), std::end(kCandidates), same);
  const double efficiency = known == std::end(kCandidates) ? 0.1 : known->efficiency;
  const std::int64_t units = std::max(1, target.compute_units);
  const auto groups = p.groups * ceil_div(p.rows, t.rows) * ceil_div(p.columns, t.columns);
  const bool matrix = uses_matrix_unit(t, target);
  const int depth = matrix ? steps_of_unit(*target.matrix_unit) : t.depth;
  const auto steps = static_cast<double>(ceil_div(p.depth, depth));
  const double flops = 2.0 * t.rows * t.columns * depth * steps;
  const double rate = matrix ? unit_rate(target) : 1;
  const double unit_flops = target.flops / static_cast<double>(units) * efficiency * rate;
  return {static_cast<double>(ceil_div(groups, units)) * flops / unit_flops,
          steps * (matrix ? cost::kMmaStepSeconds : cost::kSimtStepSeconds)};
}

double busy_seconds(const GpuProduct& p, const GpuTiles& t, const Target& target) {
  return mean_seconds(p, [&](const GpuProduct& size) { return seconds_of_size(size, t, target).busy; });
}

}  // namespace

double mean_seconds(const GpuProduct& product, const std::function<double(const GpuProduct&)>& seconds) {
  if (product.sizes.empty()) return seconds(product);
  double logarithms = 0;
  for (const GpuProduct& size : product.sizes) logarithms += std::log(seconds(size) + cost::kHostLaunchSeconds);
  return std::exp(logarithms / static_cast<double>(product.sizes.size())) - cost::kHostLaunchSeconds;
}

std::optional<SubGroupTile> GpuTiles::of_sub_group(const MatrixUnit& unit) const {
  const int elements = item_rows * item_columns * unit.lanes;
  int side = 1;
  while (side * side < elements) side *= 2;
  SubGroupTile tile;
  tile.rows = std::min(side, rows);
  tile.columns = elements / tile.rows;
  const bool fits = tile.rows % unit.m == 0 && tile.columns % unit.n == 0 && columns % tile.columns == 0;
  return fits ? std::optional(tile) : std::nullopt;
}

int steps_of_unit(const MatrixUnit& unit) { return unit.operand == UnitNumber::tf32 ? kMatrixStep : kHalfStep; }

std::int64_t unit_local_bytes(const GpuTiles& tiles, int parts) {
  const std::int64_t step = std::int64_t{2} * parts * (tiles.rows + tiles.columns) * (kHalfStep + 8),
                     results = std::int64_t{4} * tiles.rows * (tiles.columns + 8);
  return std::max(step, results);
}

bool uses_matrix_unit(const GpuTiles& tiles, const Target& target) {
  if (!target.multiplies_fragments() || !tiles.of_sub_group(*target.matrix_unit)) return false;
  return target.matrix_unit->operand == UnitNumber::tf32 ||
         unit_local_bytes(tiles, parts_of(target.precision.bf16_products)) <= target.local_bytes;
}

double gpu_product_seconds(const GpuProduct& p, const GpuTiles& t, const Target& target) {
  return mean_seconds(p, [&](const GpuProduct& size) {
    const TileSeconds seconds = seconds_of_size(size, t, target);
    return std::max(seconds.busy, seconds.waiting);
  });
}

GpuTiles choose_gpu_tiles(const GpuProduct& product, const Target& target) {
  GpuTiles best;
  // Where all wait equally long, the one that is least busy: what a step waits for grows with its tile.
  std::pair least{std::numeric_limits<double>::infinity(), 0.0};
  for (const RatedTiles& candidate : kCandidates) {
    if (!has_room(candidate.tiles, target)) continue;
    const std::pair cost{gpu_product_seconds(product, candidate.tiles, target), busy_seconds(product, candidate.tiles, target)};
    if (cost >= least) continue;
    least = cost;
    best = candidate.tiles;
  }
  if (!target.tuning) return best;
  const TunedChoice* tuned = find_tuned(
      target, {tuning_key("gpu_tiles", {product.groups, product.rows, product.columns, product.depth}), numbers_of(best)});
  for (const RatedTiles& candidate : kCandidates)
    if (tuned && *tuned == numbers_of(candidate.tiles) && has_room(candidate.tiles, target)) return candidate.tiles;
  return best;
}

std::vector<TunedChoice> gpu_tile_choices(const Target& target) {
  std::vector<TunedChoice> list;
  for (const RatedTiles& candidate : kCandidates)
    if (has_room(candidate.tiles, target)) list.push_back(numbers_of(candidate.tiles));
  return list;
}

}  // namespace oclc

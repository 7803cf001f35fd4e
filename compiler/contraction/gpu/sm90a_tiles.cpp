#include "compiler/contraction/gpu/sm90a_tiles.h"

#include <algorithm>
#include <span>

#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr int kStepDepth = 32;

// Efficiencies as measured on an H200.
constexpr Sm90aTiles kUnitCandidates[] = {
    {false, 2, 128, 64, 1, 0.65, 16, 3, 256, false, {128, 128, 16, 8, 8}},
    {false, 2, 64, 64, 1, 0.45, 16, 5, 256, false, {128, 64, 16, 8, 4}},
    {false, 1, 64, 64, 2, 0.35, 16, 3, 128, true, {64, 64, 16, 4, 4}},
    {true, 2, 128, 128, 1, 0.97, 32, 0, 128, false, {128, 128, 16, 8, 8}},
    {true, 3, 128, 64, 1, 0.98, 32, 0, 128, false, {128, 128, 16, 8, 8}},
    {true, 2, 128, 64, 1, 0.91, 32, 0, 128, false, {128, 128, 16, 8, 8}},
    {true, 2, 64, 128, 1, 0.70, 32, 0, 128, false, {128, 64, 16, 8, 4}},
    {true, 2, 64, 64, 1, 0.63, 32, 0, 128, false, {128, 64, 16, 8, 4}},
    {true, 1, 64, 64, 2, 0.63, 32, 0, 128, false, {64, 64, 16, 4, 4}},
};
// Where the matrix unit keeps the sums: tiles have as many columns as registers can hold sums of.
constexpr Sm90aTiles kKeptCandidates[] = {
    {true, 2, 256, 64, 1, 0.96, 32, 0, 128, false, {128, 128, 16, 8, 8}},
    {true, 2, 192, 64, 1, 0.85, 32, 0, 128, false, {128, 64, 16, 8, 4}},
    {true, 2, 128, 64, 1, 0.65, 32, 0, 128, false, {128, 128, 16, 8, 8}},
    {true, 2, 64, 64, 1, 0.33, 32, 0, 128, false, {128, 64, 16, 8, 4}},
    {true, 1, 64, 64, 2, 0.38, 32, 0, 128, false, {64, 64, 16, 4, 4}},
};

// Of a compute unit; what the alignment of a group's array may cost.
constexpr std::int64_t kLocalBytes = 227 << 10, kAlignmentBytes = 1 << 10;
constexpr int kMostStages = 6;
// Of rows and of columns apart: rows that fill up a slot, and the most stages.
constexpr std::int64_t kSpareRows = 8, kMostImages = 9;

// Of a group, beside the rows that the epilogue passes through local memory and counters.
std::int64_t bytes_of_stages(const Sm90aTiles& t) {
  return kLocalBytes / t.groups_of_unit - kAlignmentBytes - std::int64_t{t.warpgroups} * 64 * 68 * 4 - 256;
}

// As many stages as fit beside the table of rows.
int stages_of_halves(const Sm90aTiles& t, bool rounded) {
  const std::int64_t stage = std::int64_t{t.tile_rows()} * 128 + std::int64_t{t.columns} * (rounded ? 64 : 128) + 512;
  return static_cast<int>(std::min<std::int64_t>(kMostStages, (bytes_of_stages(t) - std::int64_t{t.tile_rows()} * 20) / stage));
}

// Sums stay in the matrix unit's accumulator, see the template.
bool keeps_sums(const GpuProduct& product, const Target& target) {
  return product.is_packed && !product.scaled_steps && target.precision.rounds_operands();
}

double seconds_of_size(const GpuProduct& p, const Sm90aTiles& t, const Target& target) {
  const std::int64_t units = std::max(1, target.compute_units), rows = t.tile_rows();
  const std::int64_t tiles = p.groups * ceil_div(p.rows, rows) * ceil_div(p.columns, t.columns);
  const auto steps = static_cast<double>(ceil_div(p.depth, kStepDepth));
  const bool keeps = t.halves && keeps_sums(p, target);
  const double flops = keeps                                ? cost::kWgmmaKeptFlops
                       : !t.halves                          ? cost::kWgmmaFlops
                       : target.precision.rounds_operands() ? cost::kWgmmaHalfFlops
                                                            : cost::kWgmmaPairFlops;
  const double step =
      2.0 * static_cast<double>(rows) * t.columns * kStepDepth / (flops / static_cast<double>(units) * t.efficiency);
  if (keeps) {
    const auto waves = static_cast<double>(ceil_div(tiles, units * t.groups_of_unit) * t.groups_of_unit);
    const double store = cost::kWgmmaKeptStoreSeconds * static_cast<double>(rows) * t.columns;
    return cost::kWgmmaStartSeconds + waves * (steps * std::max(step, cost::kWgmmaKeptStepSeconds) + store);
  }
  const auto waves = static_cast<double>(ceil_div(tiles, units));
  return cost::kWgmmaStartSeconds +
         waves * steps * std::max(step, t.halves ? cost::kWgmmaCopiedStepSeconds : cost::kWgmmaStepSeconds);
}

}  // namespace

double sm90a_seconds(const GpuProduct& p, const Sm90aTiles& t, const Target& target) {
  return mean_seconds(p, [&](const GpuProduct& size) { return seconds_of_size(size, t, target); });
}

double sm90a_store_seconds(const GpuProduct& product, const Sm90aTiles& t, const Target& target) {
  const std::int64_t units = std::max(1, target.compute_units);
  return mean_seconds(product, [&](const GpuProduct& p) {
    const std::int64_t tiles = p.groups * ceil_div(p.rows, std::int64_t{t.tile_rows()}) * ceil_div(p.columns, t.columns);
    return static_cast<double>(ceil_div(tiles, units)) * cost::kWgmmaKeptStoreSeconds * t.tile_rows() * t.columns;
  });
}

std::vector<Sm90aTiles> sm90a_candidates(const GpuProduct& product, const Target& target) {
  const std::span<const Sm90aTiles> rows =
      keeps_sums(product, target) ? std::span<const Sm90aTiles>(kKeptCandidates) : kUnitCandidates;
  std::vector<Sm90aTiles> list;
  for (const Sm90aTiles& row : rows) {
    if (row.halves != product.is_packed) continue;
    list.push_back(row);
    if (row.halves) list.back().stages = stages_of_halves(row, target.precision.rounds_operands());
  }
  return list;
}

std::optional<Sm90aTiles> choose_sm90a_tiles(const GpuProduct& product, const GpuTiles& rival, const Target& target) {
  if (!target.has.wgmma) return std::nullopt;
  std::optional<Sm90aTiles> best;
  // Where these units suit, mma.sync on the same units does not do better.
  Target plain = target;
  plain.matrix_unit = nullptr;
  double least = mean_seconds(
      product, [&](const GpuProduct& p) { return cost::kWgmmaStartSeconds + gpu_product_seconds(p, rival, plain); });
  for (const Sm90aTiles& candidate : sm90a_candidates(product, target)) {
    const double time = sm90a_seconds(product, candidate, target);
    if (time >= least) continue;
    least = time;
    best = candidate;
  }
  return best;
}

Sm90aTiles rounded_ahead(const Sm90aTiles& tiles, std::int64_t line, const GpuProduct& product,
                         std::optional<std::int64_t> rows, const Target& target) {
  Sm90aTiles t = tiles;
  const std::int64_t slot = std::int64_t{t.tile_rows() + kSpareRows} * 64;
  t.line = line;
  t.stages = static_cast<int>(
      std::min(kMostImages, (bytes_of_stages(t) - Sm90aTiles::kSlots * slot) / (std::int64_t{t.columns} * 64)));
  // Two warpgroups have no registers left for more rows; they take time, and have to save a round of tiles.
  if (t.warpgroups == 1 && line > 1 && rows) {
    const auto rounds = [&](std::int64_t own_rows) {
      return ceil_div(product.groups * ceil_div(*rows, own_rows) * ceil_div(product.columns, std::int64_t{t.columns}),
                      std::int64_t{std::max(1, target.compute_units)} * t.groups_of_unit);
    };
    t.loads_more = rounds(t.tile_rows()) < rounds(t.own_rows());
  }
  return t;
}

double best_gpu_seconds(const GpuProduct& product, const Target& target, const std::function<double(const GpuProduct&)>& more) {
  const auto with_more = [&](const std::function<double(const GpuProduct&)>& seconds) {
    return mean_seconds(product, [&](const GpuProduct& size) { return seconds(size) + (more ? more(size) : 0); });
  };
  const GpuTiles plain = choose_gpu_tiles(product, target);
  const double least = with_more([&](const GpuProduct& p) { return gpu_product_seconds(p, plain, target); });
  if (target.precision.products == Products::fma) return least;
  const auto tiles = choose_sm90a_tiles(product, plain, target);
  return tiles ? std::min(least, with_more([&](const GpuProduct& p) { return sm90a_seconds(p, *tiles, target); })) : least;
}

}  // namespace oclc

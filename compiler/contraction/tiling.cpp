#include "compiler/contraction/tiling.h"

#include <algorithm>

#include "compiler/contraction/cpu/register_tile.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/targets/costs.h"
#include "compiler/targets/tuning.h"

namespace oclc {
namespace {

// Floats of a vector that some processors multiply in two halves.
constexpr std::int64_t kHalvedWidth = 16;

// 1, 2, 3, 4, 6, 8, 12, ... up to `limit`: candidate block counts.
template <class Visit>
void geometric(std::int64_t limit, Visit visit) {
  for (std::int64_t n = 1; n <= limit; n = n < 16 ? n + 1 : n + n / 8) visit(n);
}

// Vectors of a tile's row, at most. Five fill 80 and 160 columns.
int most_vectors(const Target& target) { return target.has.tall_tiles ? 5 : 4; }

// The least estimated time among register tiles of `rows_from` to `rows_to` rows and as many vectors.
ContractionTiles modelled_tiles(const ContractionShape& s, const Target& target, int rows_from, int rows_to, int vectors_from,
                                int vectors_to) {
  const std::int64_t width = target.vector_width, cores = target.compute_units;
  ContractionTiles best;
  double best_cost = -1, best_tile = 0;
  for (int vectors = vectors_to; vectors >= vectors_from; --vectors) {
    for (int rows = rows_from; rows <= rows_to; ++rows) {
      if (!fits_registers(rows, vectors, target)) continue;
      const double multiplied = half_ends_panel(s.columns, vectors, target) ? vectors - 0.5 : vectors;
      const double step = std::max(tile_step_cycles(rows, vectors, multiplied),
                                   static_cast<double>(vectors * width * 4) / cost::kSecondCacheBytesPerCycle);
      const std::int64_t row_tiles = ceil_div(s.rows, rows), panels = ceil_div(s.columns, vectors * width);
      double tile = static_cast<double>(s.depth) * step + cost::kTileCycles + cost::kResultVectorCycles * rows * vectors;
      const std::int64_t beside = target.has.tall_tiles ? 0 : rows * s.row_bytes;
      if (static_cast<double>(s.depth * vectors * width * 4 + beside) > 0.6 * static_cast<double>(target.l2_bytes) &&
          row_tiles > 1)
        tile *= cost::kPanelMiss;
      const double cost = static_cast<double>(row_tiles * panels) * tile;
      if (best_cost >= 0 && cost >= best_cost * 0.999) continue;
      best_cost = cost;
      best_tile = tile;
      best.rows = rows;
      best.vectors = vectors;
    }
  }
  const std::int64_t row_tiles = ceil_div(s.rows, best.rows), panels = ceil_div(s.columns, best.vectors * width),
                     least_row_tiles = ceil_div(s.least_rows, best.rows);
  const double panel_bytes = static_cast<double>(s.depth * best.vectors * width * 4),
               row_bytes = static_cast<double>(best.rows * s.row_bytes);
  double split_cost = -1;
  geometric(std::min(row_tiles, 32 * cores), [&](std::int64_t row_blocks) {
    const std::int64_t mt = ceil_div(row_tiles, row_blocks);
    geometric(std::min(panels, 64 * cores), [&](std::int64_t panel_blocks) {
      const std::int64_t np = ceil_div(panels, panel_blocks), items = s.groups * ceil_div(row_tiles, mt) * ceil_div(panels, np);
      const double work = static_cast<double>(mt * np) * best_tile;
      if (items > 32 * cores && items > s.groups && work < 2e5) return;
      const double first =
          (static_cast<double>(np) * panel_bytes + static_cast<double>(mt) * row_bytes) / cost::kLastCacheBytesPerCycle;
      const bool fits = std::min(static_cast<double>(np) * panel_bytes, static_cast<double>(mt) * row_bytes) <
                        static_cast<double>(target.l2_bytes) / 2;
      const double fresh = s.fresh_columns ? std::max(0.0, panel_bytes / cost::kMemoryBytesPerCycle - best_tile) : 0;
      double cost = static_cast<double>(ceil_div(items, cores)) *
                    (work + first + fresh + (fits ? 0 : cost::kReread * work) + cost::kItemCycles);
      if (items < 4 * cores || work > cost::kLongItemCycles) cost *= cost::kFewItems;
      if (s.least_groups > 0) {
        // Of an open size the least counts as much as the typical one: both over what evenly busy cores would take.
        const std::int64_t fewest = s.least_groups * ceil_div(least_row_tiles, mt) * ceil_div(panels, np);
        const double item = static_cast<double>(std::min(mt, least_row_tiles) * np) * best_tile;
        const double even = static_cast<double>(panels) * best_tile / static_cast<double>(cores);
        cost = cost / (static_cast<double>(s.groups * row_tiles) * even) +
               static_cast<double>(ceil_div(fewest, cores)) * (item + cost::kItemCycles) /
                   (static_cast<double>(s.least_groups * least_row_tiles) * even);
      }
      if (split_cost >= 0 && cost >= split_cost) return;
      split_cost = cost;
      best.row_tiles = mt;
      best.panels = np;
    });
  });
  // Cores that share panels read all rows of A each, and half of the results come from another core to who reads them by rows.
  best.rows_fastest = s.columns * s.depth * 4 > s.rows * (s.row_bytes + s.columns * 4);
  return best;
}

TunedChoice numbers_of(const ContractionTiles& t) { return {t.rows, t.vectors, t.row_tiles, t.panels, t.rows_fastest ? 1 : 0}; }

}  // namespace

bool half_ends_panel(std::int64_t columns, std::int64_t vectors, const Target& target) {
  const std::int64_t width = target.vector_width, last = columns - (vectors - 1) * width;
  return width == kHalvedWidth && last > 0 && last <= width / 2;
}

ContractionTiles choose_tiles(const ContractionShape& s, const Target& target, int max_rows) {
  const ContractionTiles modelled = modelled_tiles(s, target, 1, max_rows, 1, most_vectors(target));
  if (!target.tuning) return modelled;
  const TunedChoice* c = find_tuned(
      target, {tuning_key("cpu_tiles", {s.groups, s.rows, s.columns, s.depth, s.row_bytes, max_rows}), numbers_of(modelled)});
  const bool legal = c && c->size() == 5 && (*c)[0] >= 1 && (*c)[0] <= max_rows && (*c)[1] >= 1 &&
                     (*c)[1] <= most_vectors(target) && fits_registers((*c)[0], (*c)[1], target) && (*c)[2] >= 1 &&
                     (*c)[2] <= s.rows && (*c)[3] >= 1 && (*c)[3] <= s.columns;
  if (!legal) return modelled;
  return {static_cast<int>((*c)[0]), static_cast<int>((*c)[1]), (*c)[2], (*c)[3], (*c)[4] != 0};
}

std::vector<TunedChoice> tile_choices(const ContractionShape& s, const Target& target, int max_rows) {
  std::vector<TunedChoice> list;
  for (int vectors = 1; vectors <= most_vectors(target); ++vectors) {
    for (int rows = 1; rows <= max_rows; ++rows) {
      if (!fits_registers(rows, vectors, target) || rows * vectors < std::min<std::int64_t>(8, s.rows)) continue;
      const ContractionTiles t = modelled_tiles(s, target, rows, rows, vectors, vectors);
      list.push_back(numbers_of(t));
      // The other order of work-items, and half as long ones.
      list.push_back({t.rows, t.vectors, t.row_tiles, t.panels, t.rows_fastest ? 0 : 1});
      if (t.row_tiles > 1) list.push_back({t.rows, t.vectors, ceil_div(t.row_tiles, 2), t.panels, t.rows_fastest ? 1 : 0});
      if (t.panels > 1) list.push_back({t.rows, t.vectors, t.row_tiles, ceil_div(t.panels, 2), t.rows_fastest ? 1 : 0});
    }
  }
  return list;
}

}  // namespace oclc

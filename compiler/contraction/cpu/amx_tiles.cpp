#include "compiler/contraction/cpu/amx_tiles.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Seconds of a core, measured on a Xeon of the fourth generation: a step of 32 terms of 32 x 32 sums, the same step's 32 lines
// read, mostly from where another core wrote them, and split into parts, start and end of 32 x 32 sums with their epilogue,
// start of a work-item.
struct Costs {
  double multiply, split, block;
};
constexpr Costs costs_of(int products) {
  return products == 6   ? Costs{140e-9, 300e-9, 500e-9}
         : products == 3 ? Costs{64e-9, 250e-9, 250e-9}
                         : Costs{28e-9, 40e-9, 250e-9};
}
// Those lines split alone.
constexpr double split_alone(int products) { return products == 6 ? 170e-9 : products == 3 ? 120e-9 : 40e-9; }
// The same of integers of three bytes: a step of 64 terms of 16 x 32 sums, its 16 lines, 16 x 32 sums. The longest sums that do
// not overflow.
constexpr Costs kDigitsCosts{64e-9, 250e-9, 200e-9};
constexpr std::int64_t kMostDigitTerms = 43000;
// Steps after which a block may go on with its sums from memory.
constexpr std::int64_t kFewestSteps = 8;
// Results of wide rows are stored row by row where an item has so many panels, whose weights are no more than this share of the
// second-level cache: they are read again for every block of rows. Larger ones come from memory while tiles multiply.
constexpr std::int64_t kFewestSwept = 8, kSweptShare = 8;

// Steps of a panel of weights for so many blocks of rows, which ask for the next panel meanwhile.
double panel_seconds(double steps, double blocks, double multiply, double step_bytes) {
  return steps * std::max(blocks * multiply, step_bytes / cost::kAmxCoreStream);
}

// How blocks of sums are multiplied: lines and terms of a step, bytes of a step of weights, of a line of a step, of a block's
// sums, and of what else there is for a line.
struct Unit {
  Costs costs;
  std::int64_t lines, terms, step_bytes, line_bytes, sum_bytes, other_bytes;
};

Unit parts_unit(int products) {
  const std::int64_t parts = parts_of(products);
  return {costs_of(products), 32, 32, parts * 2048, parts * 64, 4096, 0};
}

// A line takes as much as without a unit, where it is floats.
Unit digits_unit() { return {kDigitsCosts, 16, 64, kDigitStepBytes, 256, 6144, 4}; }

// Taps of a panel that all blocks multiply before they go on to the next: all, or the largest divisor that fits.
std::int64_t taps_at_once(const AmxWindowProduct& p, std::int64_t blocks, const Unit& unit, std::int64_t window_bytes,
                          const Target& target) {
  const auto room = static_cast<std::int64_t>(cost::kAmxPanelsShare * static_cast<double>(target.l2_bytes)) - window_bytes;
  const std::int64_t steps = p.steps(unit.terms) / p.taps;
  std::int64_t least = p.taps;
  const std::vector<std::int64_t> shares = blocks > 1 ? divisors(p.taps) : std::vector<std::int64_t>();
  for (std::size_t i = shares.size(); i-- > 0;) {
    const std::int64_t n = shares[i];
    if (n * steps < kFewestSteps) break;
    least = n;
    if (2 * n * steps * unit.step_bytes <= room) break;
  }
  return least;
}

// Sizes of the largest of equal shares of `count` things among one item, two, and so on up to `most`.
std::vector<std::int64_t> equal_shares(std::int64_t count, std::int64_t most) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t items = 1; items <= std::min(count, most); ++items) {
    const std::int64_t size = ceil_div(count, items);
    if (sizes.empty() || size != sizes.back()) sizes.push_back(size);
  }
  return sizes;
}

// Items that a core computes one after another, each as long as it takes at the pace of the row's cores. Fewer than four let a
// disturbed core delay the whole launch.
double rounds(std::int64_t items, const Target& target) {
  const std::int64_t cores = std::max(1, target.compute_units);
  return static_cast<double>(ceil_div(items, cores)) * (items < 4 * cores ? cost::kAmxImbalance : 1) / target.pace;
}

std::optional<AmxWindowTiles> choose_window(const AmxWindowProduct& p, const Unit& unit, const Target& target) {
  const auto [multiply, split, block_seconds] = unit.costs;
  const std::int64_t steps = p.steps(unit.terms), channel_steps = steps / p.taps, panels = ceil_div(p.features, 32),
                     cores = std::max(1, target.compute_units);
  const double budget =
      std::min(cost::kAmxCacheShare * static_cast<double>(target.l2_bytes), static_cast<double>(target.local_bytes));
  const double weights = static_cast<double>(panels * steps * unit.step_bytes) / target.bytes_per_second;
  std::optional<AmxWindowTiles> best;
  for (std::int64_t rows = 1; rows <= p.rows; ++rows) {
    const std::int64_t row_items = ceil_div(p.rows, rows);
    if (rows > 1 && ceil_div(p.rows, rows - 1) == row_items) continue;
    const std::int64_t blocks = ceil_div(rows * p.pitch, unit.lines), lines = p.phases * (blocks * unit.lines + p.reach),
                       used = p.phases * (rows * p.pitch + p.reach);
    const std::int64_t window_bytes = lines * (channel_steps * unit.line_bytes + unit.other_bytes),
                       at_once = taps_at_once(p, blocks, unit, window_bytes, target);
    if (static_cast<double>(window_bytes + 64 + (at_once < p.taps ? blocks : 2) * unit.sum_bytes) > budget) break;
    for (const std::int64_t panels_of_item : equal_shares(panels, 8 * cores)) {
      AmxWindowTiles t;
      t.rows = rows;
      t.taps_at_once = at_once;
      t.panels = panels_of_item;
      const std::int64_t items = p.images * row_items * ceil_div(panels, t.panels);
      const double panel = panel_seconds(static_cast<double>(steps), static_cast<double>(blocks), multiply,
                                         static_cast<double>(unit.step_bytes)) +
                           static_cast<double>(blocks) * (static_cast<double>(p.taps) * cost::kAmxTapSeconds + block_seconds +
                                                          static_cast<double>(p.taps / at_once - 1) * cost::kAmxGoOnSeconds);
      const double item = cost::kAmxItemSeconds +
                          static_cast<double>(used * channel_steps) / static_cast<double>(unit.lines) * split +
                          static_cast<double>(t.panels) * panel;
      t.seconds = std::max(rounds(items, target) * item, weights);
      if (!best || t.seconds < best->seconds * 0.999) best = t;
    }
  }
  return best;
}

// Whether a product of so long sums may be one of integers.
bool takes_digits(std::int64_t terms, const Target& target) {
  return target.multiplies_tiles() && target.has.int8_tiles && target.precision.allows_limbs() && terms <= kMostDigitTerms;
}

}  // namespace

double unhidden_seconds(std::int64_t bytes, const Target& target) {
  return cost::kAmxUnhidden * static_cast<double>(bytes) / target.bytes_per_second;
}

std::optional<AmxWindowTiles> choose_amx_window(const AmxWindowProduct& p, const Target& target) {
  if (!target.multiplies_tiles()) return std::nullopt;
  return choose_window(p, parts_unit(target.precision.bf16_products), target);
}

std::optional<AmxWindowTiles> choose_amx_window_digits(const AmxWindowProduct& p, const Target& target) {
  if (!takes_digits(p.taps * p.channels, target)) return std::nullopt;
  return choose_window(p, digits_unit(), target);
}

std::optional<AmxWindowTiles> choose_amx_patches(const AmxPatchProduct& p, const Target& target) {
  if (!target.multiplies_tiles()) return std::nullopt;
  const auto [multiply, split, block_seconds] = costs_of(target.precision.bf16_products);
  const std::int64_t steps = p.steps(), panels = ceil_div(p.features, 32), cores = std::max(1, target.compute_units),
                     parts = parts_of(target.precision.bf16_products),
                     segments = p.channels * p.taps_y * ceil_div(p.taps_x, p.segment()),
                     width = (p.columns - 1) * p.stride_x + p.taps_x;
  const double budget =
      std::min(cost::kAmxCacheShare * static_cast<double>(target.l2_bytes), static_cast<double>(target.local_bytes));
  const double line =
      static_cast<double>(segments) * cost::kAmxSegmentSeconds + (parts > 1 ? static_cast<double>(steps) / 32 * split : 0);
  std::optional<AmxWindowTiles> best;
  for (std::int64_t rows = 1; rows <= p.rows; ++rows) {
    const std::int64_t row_items = ceil_div(p.rows, rows);
    if (rows > 1 && ceil_div(p.rows, rows - 1) == row_items) continue;
    const std::int64_t blocks = ceil_div(rows * p.columns, 32),
                       window = p.channels * ((rows - 1) * p.stride_y + (p.taps_y - 1) * p.dilation_y + 1) * width,
                       patches = parts == 1 ? blocks * steps * 512 : steps * (1024 + blocks * parts * 512);
    const auto fits = [&](std::int64_t sums) {
      return static_cast<double>((window + patches + 48 + sums * 1024) * 4) <= budget;
    };
    if (!fits(1)) break;
    for (const std::int64_t panels_of_item : equal_shares(panels, 8 * cores)) {
      AmxWindowTiles t;
      t.rows = rows;
      t.panels = panels_of_item;
      if (blocks * t.panels > 1 && !fits(2)) continue;
      const std::int64_t items = p.images * row_items * ceil_div(panels, t.panels);
      const double panel =
          panel_seconds(static_cast<double>(steps), static_cast<double>(blocks), multiply, static_cast<double>(parts * 2048)) +
          static_cast<double>(blocks) * block_seconds;
      const double item = cost::kAmxItemSeconds + static_cast<double>(window) * cost::kAmxWindowSeconds +
                          static_cast<double>(blocks * 32) * line + static_cast<double>(t.panels) * panel;
      t.seconds = rounds(items, target) * item;
      if (!best || t.seconds < best->seconds * 0.999) best = t;
    }
  }
  return best;
}

std::int64_t amx_local_floats(const AmxTiles& t, const AmxProduct& p, int products) {
  const std::int64_t steps = p.steps(), sums = t.chunk < steps ? t.row_blocks * t.panels : t.sweep ? t.panels : 2;
  return 16 + sums * (t.sweep ? 1040 : 1024) + t.row_blocks * t.chunk * parts_of(products) * 512;
}

double fma_window_seconds(const AmxPatchProduct& p, const Target& target) {
  AmxProduct product;
  product.rows = p.images * p.rows * p.columns;
  product.columns = p.features;
  product.inner = p.channels * p.taps_y * p.taps_x;
  const double blocks = static_cast<double>(product.rows) / 32 * static_cast<double>(ceil_div(p.features, 32));
  return fma_seconds(product, target) + blocks * cost::kAmxFmaBlockSeconds / std::max(1, target.compute_units);
}

double fma_seconds(const AmxProduct& p, const Target& target) {
  const double terms = static_cast<double>(p.groups * p.taps * p.inner), rows = static_cast<double>(p.rows),
               columns = static_cast<double>(ceil_div(p.columns, target.vector_width) * target.vector_width);
  return std::max(2 * terms * rows * columns / (target.flops * cost::kAmxFmaEfficiency),
                  terms * static_cast<double>(p.columns) * 4 / target.bytes_per_second);
}

bool tiles_gain(double tile_seconds, double fma_seconds, const Target& target) {
  return tile_seconds * (target.precision.bf16_products == 6 ? cost::kAmxSixMargin : 1) < fma_seconds;
}

std::optional<AmxPairTiles> choose_amx_pair(const AmxPairProduct& p, const Target& target) {
  if (!target.multiplies_tiles()) return std::nullopt;
  const Costs costs = costs_of(target.precision.bf16_products);
  const double multiply = costs.multiply, split = split_alone(target.precision.bf16_products), block_seconds = costs.block;
  const std::int64_t steps = p.steps(), row_blocks = ceil_div(p.rows, 32), panels = ceil_div(p.columns, 32),
                     step_floats = parts_of(target.precision.bf16_products) * 512,
                     budget = std::min(target.l2_bytes * 7 / 8, target.local_bytes) / 4;
  const double row_step = p.copy_rows + split + (p.turned_rows ? cost::kAmxTurnRowsSeconds : 0),
               column_step = p.copy_columns + split;
  std::optional<AmxPairTiles> best;
  for (const std::int64_t most : {4, 8, 16}) {
    AmxPairTiles t;
    t.chunk = p.any_terms ? most : std::min(most, steps);
    for (std::int64_t row_items = 1; row_items <= row_blocks; row_items += std::max<std::int64_t>(1, row_items / 8)) {
      t.row_blocks = ceil_div(row_blocks, row_items);
      for (std::int64_t panel_items = 1; panel_items <= panels; panel_items += std::max<std::int64_t>(1, panel_items / 8)) {
        t.panels = ceil_div(panels, panel_items);
        const std::int64_t sums = p.any_terms || t.chunk < steps ? t.row_blocks * t.panels : 0;
        if (16 + (sums + 2) * 1024 + (t.row_blocks + t.panels) * (t.chunk * step_floats + 1040) > budget) continue;
        const auto blocks = static_cast<double>(t.row_blocks * t.panels),
                   chunks = static_cast<double>(ceil_div(steps, t.chunk));
        const double item = cost::kAmxItemSeconds +
                            static_cast<double>(steps) * (static_cast<double>(t.row_blocks) * row_step +
                                                          static_cast<double>(t.panels) * column_step + blocks * multiply) +
                            blocks * (chunks * cost::kAmxAddSeconds + block_seconds);
        const std::int64_t items = p.groups * ceil_div(row_blocks, t.row_blocks) * ceil_div(panels, t.panels);
        t.seconds = rounds(items, target) * item;
        if (!best || t.seconds < best->seconds * 0.999) best = t;
      }
    }
    if (!p.any_terms && t.chunk == steps) break;
  }
  return best;
}

double fma_pair_seconds(const AmxPairProduct& p, const Target& target) {
  return 2 * static_cast<double>(p.groups * p.rows * p.columns * p.taps * p.inner) / (target.flops * cost::kAmxFmaPairs);
}

std::optional<AmxTiles> choose_amx_digits(const AmxProduct& p, const Target& target) {
  if (!takes_digits(p.taps * p.inner, target)) return std::nullopt;
  const Unit unit = digits_unit();
  const double split = unit.costs.split * (p.vectors ? 1 : cost::kAmxScalarLine);
  const std::int64_t steps = p.taps * ceil_div(p.inner, unit.terms), row_blocks = ceil_div(p.rows, unit.lines),
                     panels = ceil_div(p.columns, 32), cores = std::max(1, target.compute_units);
  const double weights = static_cast<double>(p.groups * panels * steps * unit.step_bytes) / target.bytes_per_second;
  std::optional<AmxTiles> best;
  for (std::int64_t mt = 1; mt <= std::min<std::int64_t>(row_blocks, 32); ++mt) {
    const std::int64_t row_items = ceil_div(row_blocks, mt);
    if (mt > 1 && ceil_div(row_blocks, mt - 1) == row_items) continue;
    for (const std::int64_t panels_of_item : equal_shares(panels, 8 * cores)) {
      AmxTiles t;
      t.row_blocks = mt;
      t.panels = panels_of_item;
      // Digits beside two panels, and the results that later chunks add to. In the cache lines are three bytes an element.
      const auto fits = [&](std::int64_t chunk) {
        const std::int64_t lines = mt * unit.lines, results = chunk < steps ? lines * t.panels * 128 : 0,
                           others = steps * unit.line_bytes + 2 * unit.sum_bytes + lines * unit.other_bytes + 64 + results,
                           two_panels = (mt > 1 ? 2 : 0) * chunk * unit.step_bytes;
        return static_cast<double>(lines * chunk * 3 * unit.terms + others + two_panels) <=
                   cost::kAmxPanelsShare * static_cast<double>(target.l2_bytes) &&
               lines * chunk * unit.line_bytes + others <= target.local_bytes;
      };
      std::int64_t chunks = 1;
      while (!fits(ceil_div(steps, chunks)) && ceil_div(steps, chunks) > kFewestSteps) ++chunks;
      t.chunk = ceil_div(steps, chunks);
      if (!fits(t.chunk)) continue;
      const std::int64_t items = p.groups * row_items * ceil_div(panels, t.panels);
      const auto blocks = static_cast<double>(mt);
      const double item =
          cost::kAmxItemSeconds + static_cast<double>(mt * steps) * split +
          static_cast<double>(t.panels) *
              (panel_seconds(static_cast<double>(steps), blocks, unit.costs.multiply, static_cast<double>(unit.step_bytes)) +
               blocks * unit.costs.block * static_cast<double>(ceil_div(steps, t.chunk)));
      t.seconds = std::max(rounds(items, target) * item, weights);
      if (!best || t.seconds < best->seconds * 0.999) best = t;
    }
  }
  return best;
}

std::optional<AmxTiles> choose_amx_tiles(const AmxProduct& p, const Target& target) {
  if (!target.multiplies_tiles()) return std::nullopt;
  const auto [multiply, split_step, block_seconds] = costs_of(target.precision.bf16_products);
  const double split = split_step * (p.vectors ? 1 : cost::kAmxScalarLine);
  const std::int64_t steps = p.steps(), row_blocks = ceil_div(p.rows, 32), panels = ceil_div(p.columns, 32),
                     cores = std::max(1, target.compute_units), step_bytes = parts_of(target.precision.bf16_products) * 2048;
  const auto budget = static_cast<std::int64_t>(
      std::min(cost::kAmxCacheShare * static_cast<double>(target.l2_bytes), static_cast<double>(target.local_bytes)));
  const double weights = static_cast<double>(p.groups * panels * steps * step_bytes) / target.bytes_per_second;
  std::optional<AmxTiles> best;
  for (std::int64_t mt = 1; mt <= std::min<std::int64_t>(row_blocks, 16); ++mt) {
    const std::int64_t row_items = ceil_div(row_blocks, mt);
    if (mt > 1 && ceil_div(row_blocks, mt - 1) == row_items) continue;
    for (const std::int64_t panels_of_item : equal_shares(panels, 8 * cores)) {
      AmxTiles t;
      t.row_blocks = mt;
      t.panels = panels_of_item;
      t.chunk = steps;
      if (amx_local_floats(t, p, target.precision.bf16_products) * 4 > budget) {
        const std::int64_t room = budget - 64 - mt * t.panels * 4096;
        if (room < mt * step_bytes * 4) continue;
        // Chunks of equal size.
        const std::int64_t chunks = ceil_div(steps, room / (mt * step_bytes));
        t.chunk = ceil_div(steps, chunks);
      }
      if (mt > 1) {
        const auto beside = static_cast<std::int64_t>(cost::kAmxPanelsShare * static_cast<double>(target.l2_bytes));
        const auto fits = [&](std::int64_t chunk) {
          return (mt + 2) * chunk * step_bytes + (chunk < steps ? mt * t.panels : 2) * 4096 <= beside;
        };
        for (std::int64_t chunks = ceil_div(steps, t.chunk); !fits(t.chunk) && t.chunk > kFewestSteps;)
          t.chunk = ceil_div(steps, ++chunks);
        if (amx_local_floats(t, p, target.precision.bf16_products) * 4 > budget) continue;
      }
      t.sweep = t.chunk == steps && mt > 1 && t.panels >= kFewestSwept &&
                t.panels * steps * step_bytes * kSweptShare <= target.l2_bytes;
      if (t.sweep && amx_local_floats(t, p, target.precision.bf16_products) * 4 > budget) t.sweep = false;
      const std::int64_t items = p.groups * row_items * ceil_div(panels, t.panels), chunks = ceil_div(steps, t.chunk);
      const auto blocks = static_cast<double>(mt), panel_count = static_cast<double>(t.panels);
      const double item =
          cost::kAmxItemSeconds + static_cast<double>(mt * steps) * split +
          panel_count * (panel_seconds(static_cast<double>(steps), blocks, multiply, static_cast<double>(step_bytes)) +
                         blocks * block_seconds * static_cast<double>(chunks));
      t.seconds = std::max(rounds(items, target) * item, weights);
      if (!best || t.seconds < best->seconds * 0.999) best = t;
    }
  }
  return best;
}

}  // namespace oclc

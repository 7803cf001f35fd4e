#include "compiler/contraction/cpu/winograd.h"

#include <algorithm>

#include "compiler/contraction/cpu/register_tile.h"
#include "compiler/ir/division.h"
#include "compiler/ops/winograd.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

struct TransformCycles {
  double input, output;
};
constexpr TransformCycles kTwo = {cost::kWinogradTwoInput, cost::kWinogradTwoOutput},
                          kFour = {cost::kWinogradFourInput, cost::kWinogradFourOutput},
                          kWide = {cost::kWinogradWideInput, cost::kWinogradWideOutput};
// Floats between rows of the block in local memory, beside the channels: V_PITCH of the template.
constexpr std::int64_t kPitch = 16;
// Vectors of 512 bits: panels are two vectors wide where so many rows fit, fewer rows wait for the weights.
constexpr int kWideRows = 7, kWideVectors = 2;

bool fits_winograd(const Window& image, std::int64_t tile) {
  const auto fits = [](const ImageAxis& axis) { return axis.stride == 1 && axis.dilation == 1; };
  return image.per_channel == 1 && fits(image.y) && fits(image.x) && image.y.taps == image.x.taps &&
         has_winograd(tile, image.y.taps);
}

}  // namespace

std::optional<WinogradTiles> choose_winograd_tiles(const WinogradShape& s, const Target& target) {
  const std::int64_t width = target.vector_width, cores = target.compute_units, window = s.tile + s.taps - 1,
                     points = window * window;
  const TransformCycles transform = window == 4 ? kTwo : s.tile == 4 ? kFour : kWide;
  const bool few = !target.has.tall_tiles;
  const auto block_bytes = [&](std::int64_t rows, std::int64_t panel_width) {
    return static_cast<double>(4 * points * rows * (s.channels + kPitch + panel_width));
  };
  double budget =
      std::min(cost::kWinogradCacheShare * static_cast<double>(target.l2_bytes), static_cast<double>(target.local_bytes));
  int most_vectors = 4;
  const bool by_core = has_wide_vectors(target) && window == 4;
  if (has_wide_vectors(target) && !by_core) {
    const double wanted = s.tile == 4 ? cost::kWinogradChannelBytes * static_cast<double>(s.channels)
                                      : static_cast<double>(target.l2_bytes) - cost::kWinogradLeftToWeights;
    budget = std::min(budget, std::max(cost::kWinogradSmallestBudget, wanted));
    if (s.tile == 4 && block_bytes(kWideRows, kWideVectors * width) <= budget) most_vectors = kWideVectors;
  }
  std::optional<WinogradTiles> best;
  double best_cost = 0;
  for (int vectors = most_vectors; vectors >= 1; --vectors) {
    for (int rows = 2; rows <= 14; ++rows) {
      if (!fits_registers(rows, vectors, target)) continue;
      const std::int64_t panel_width = vectors * width, panels = ceil_div(s.features, panel_width);
      const double loads = few || by_core ? static_cast<double>(panel_width * 4) / cost::kSecondCacheBytesPerCycle : 0,
                   step = std::max(tile_step_cycles(rows, vectors), loads);
      for (std::int64_t row_tiles = 1; row_tiles * rows < s.tiles + rows && row_tiles <= 16; ++row_tiles) {
        // Blocks of equal size: the last one is not a small rest.
        const std::int64_t blocks = ceil_div(s.tiles, row_tiles * rows), tiles = ceil_div(s.tiles, blocks),
                           block_rows = ceil_div(tiles, rows) * rows;
        const double bytes = block_bytes(block_rows, panel_width);
        if (bytes > budget) break;
        for (const std::int64_t parts : {std::int64_t{1}, std::int64_t{2}, cores}) {
          if (parts > panels) continue;
          const std::int64_t np = ceil_div(panels, parts), items = blocks * ceil_div(panels, np);
          const double in = static_cast<double>(tiles) * static_cast<double>(ceil_div(s.channels, width)) * transform.input,
                       out = static_cast<double>(tiles * np * vectors) * transform.output,
                       multiply = static_cast<double>(np * points * (block_rows / rows)) *
                                  (static_cast<double>(s.channels) * step + cost::kWinogradTileCycles + rows * vectors),
                       panel_bytes = static_cast<double>(np * points * s.channels * panel_width * 4);
          const auto with_weights = [&](double bytes_of_cycle) {
            const double weights = panel_bytes / bytes_of_cycle;
            return std::max(multiply + cost::kWinogradExposed * weights, weights);
          };
          double cost = static_cast<double>(ceil_div(items, cores)) * (cost::kWinogradItemCycles + in + out);
          if (by_core) {
            // Groups of the same panels follow one another: a core has panels of its own, as far as there are parts for all.
            const std::int64_t all = ceil_div(items, cores), fresh = std::min(all, ceil_div(ceil_div(panels, np), cores));
            const bool stays = panel_bytes + bytes <= cost::kWinogradCacheShare * static_cast<double>(target.l2_bytes);
            cost += static_cast<double>(fresh) * with_weights(cost::kWinogradFreshBytesPerCycle) +
                    static_cast<double>(all - fresh) *
                        with_weights(stays ? cost::kWinogradWeightBytesPerCycle : cost::kWinogradAgainBytesPerCycle);
          } else {
            cost += static_cast<double>(ceil_div(items, cores)) * with_weights(cost::kWinogradWeightBytesPerCycle);
          }
          if (best && cost >= best_cost * 0.999) continue;
          best_cost = cost;
          best = WinogradTiles{rows, vectors, tiles, np, static_cast<std::int64_t>(bytes), s.tile, cost};
        }
      }
    }
  }
  return best;
}

bool asks_for_winograd(const Problem& p) { return p.asked == StrategyId::winograd_2 || p.asked == StrategyId::winograd_4; }

std::optional<WinogradTiles> choose_winograd(const Problem& p, const Target& target) {
  if (!asks_for_winograd(p) || !p.k.known || p.k.typical % target.vector_width != 0 || !p.n.known || p.a.stored != DType::f32 ||
      p.b.stored != DType::f32 || !p.window)
    return std::nullopt;
  WinogradShape shape;
  shape.tile = p.asked == StrategyId::winograd_2 ? 2 : 4;
  if (!fits_winograd(*p.window, shape.tile)) return std::nullopt;
  const Window& image = *p.window;
  shape.taps = image.y.taps;
  shape.tiles = image.images * ceil_div(image.y.outputs, shape.tile) * ceil_div(image.x.outputs, shape.tile);
  shape.channels = p.k.typical;
  shape.features = p.n.typical;
  return choose_winograd_tiles(shape, target);
}

}  // namespace oclc

#include "compiler/contraction/cpu/window.h"

#include <algorithm>

#include "compiler/contraction/cpu/register_tile.h"
#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Output rows of a work-item, if the image has several times as many.
constexpr std::int64_t kRows = 2, kFewRows = 8;
// The window stays in the first-level cache.
constexpr std::int64_t kWindowBytes = 40 << 10;

WindowTiles tiles_of(const Window& image, std::int64_t channels, std::int64_t columns, const Target& target) {
  WindowTiles best;
  double best_cost = -1;
  const auto depth = static_cast<double>(channels * image.y.taps * image.x.taps);
  for (int vectors = 4; vectors >= 1; --vectors) {
    for (int pixels = 1; pixels <= 14; ++pixels) {
      if (!fits_registers(pixels, vectors, target)) continue;
      const double tile =
          depth * tile_step_cycles(pixels, vectors) + cost::kTileCycles + cost::kResultVectorCycles * pixels * vectors;
      const double cost = tile * static_cast<double>(ceil_div(image.x.outputs, pixels) *
                                                     ceil_div(columns, std::int64_t{vectors} * target.vector_width));
      if (best_cost >= 0 && cost >= best_cost * 0.999) continue;
      best_cost = cost;
      best.pixels = pixels;
      best.vectors = vectors;
    }
  }
  best.rows = image.y.outputs >= kFewRows ? kRows : 1;
  return best;
}

bool is_inside(const ImageAxis& axis) {
  return axis.first <= axis.last && axis.last <= (axis.outputs - 1) * axis.stride + (axis.taps - 1) * axis.dilation;
}

}  // namespace

std::string_view refuse_window(const Problem& p) {
  if (p.taps == 1) return "one tap";
  if (!p.k.known || !p.n.known) return "channels or features are not known";
  if (!p.window || p.a.stored != DType::f32 || p.b.stored != DType::f32) return "no window of an image of floats";
  if (!p.b.constant && !p.b.placed_taps) return "the weights' taps do not lie at equal distances";
  if (!is_inside(p.window->y) || !is_inside(p.window->x)) return "the image ends outside of its windows";
  return {};
}

std::optional<WindowTiles> choose_window(const Problem& p, const Target& target) {
  const Window& image = *p.window;
  WindowTiles tiles = tiles_of(image, p.k.typical, p.n.typical, target);
  tiles.weights_in_place = !p.b.constant;
  const std::int64_t width = (ceil_div(image.x.outputs, tiles.pixels) * tiles.pixels - 1) * image.x.stride +
                             (image.x.taps - 1) * image.x.dilation + 1,
                     height = (tiles.rows - 1) * image.y.stride + (image.y.taps - 1) * image.y.dilation + 1;
  if (p.k.typical * width * height * 4 > std::min(kWindowBytes, target.local_bytes)) return std::nullopt;
  // In place no columns of zeros fill a last panel.
  if (tiles.weights_in_place && p.n.typical % (tiles.vectors * target.vector_width) != 0) return std::nullopt;
  return tiles;
}

}  // namespace oclc

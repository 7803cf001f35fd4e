// The transforms of Winograd convolution. One point of the iteration space computes a tile of one channel with everything in
// registers; channels are innermost, so that vectors run over them.
#include "compiler/kernels/index_maps.h"
#include "compiler/kernels/lower/lower_kernel.h"
#include "compiler/kernels/lower/winograd_transform.h"

namespace oclc {
namespace {

using Nodes = std::vector<NodeId>;

// Axes n, ty, tx and channel; the tile's number.
struct TileAxes {
  Expr n, y, x, channel, number;
};

TileAxes add_tile_axes(KernelBuilder& b, const Expr& batch, const Expr& height, const Expr& width, const Expr& channels,
                       std::int64_t tile) {
  const Expr down = ceil_div(height, Expr(tile)), across = ceil_div(width, Expr(tile));
  TileAxes t;
  t.n = b.add_axis("image", batch);
  t.y = b.add_axis("tile_y", down);
  t.x = b.add_axis("tile_x", across);
  t.channel = b.add_axis("channel", channels);
  t.number = (t.n * down + t.y) * across + t.x;
  return t;
}

}  // namespace

void lower_winograd_input(KernelBuilder& b, const Node& node) {
  const Value *x = node.inputs[0], *result = node.output();
  const Winograd& f = winograd(node.get<std::int64_t>("tile"));
  const auto& pads = node.get<std::vector<std::int64_t>>("pads");
  const Shape& sx = x->type.shape;
  const std::int64_t lost = kWinogradFilter - 1;
  const Expr height = sx[2] + Expr(pads[0] + pads[2] - lost), width = sx[3] + Expr(pads[1] + pads[3] - lost);
  const TileAxes t = add_tile_axes(b, sx[0], height, width, sx[1], f.tile);
  Nodes data;
  for (std::int64_t i = 0; i < f.window; ++i) {
    for (std::int64_t j = 0; j < f.window; ++j) {
      const Expr row = t.y * Expr(f.tile) + Expr(i - pads[0]), column = t.x * Expr(f.tile) + Expr(j - pads[1]);
      std::vector<Expr> guard;
      for (const auto& [at, extent] : {std::pair(row, sx[2]), std::pair(column, sx[3])}) {
        add_condition(guard, at);
        add_condition(guard, extent - 1 - at);
      }
      data.push_back(b.guarded(b.element(x, {t.n, t.channel, row, column}, guard), {}, guard, 0));
    }
  }
  const Nodes v = transform_both_sides(b, f.input, data, transform_rows);
  for (std::size_t k = 0; k < v.size(); ++k)
    b.parts.push_back({{Expr(static_cast<std::int64_t>(k)), t.channel, t.number}, v[k], {}});
  b.bind(result, b.parts[0].coords, b.parts[0].node);
}

void lower_winograd_output(KernelBuilder& b, const Node& node) {
  const Value *m = node.inputs[0], *result = node.output();
  const Winograd& f = winograd(node.get<std::int64_t>("tile"));
  const Shape& shape = result->type.shape;
  const TileAxes t = add_tile_axes(b, shape[0], shape[2], shape[3], shape[1], f.tile);
  Nodes data;
  for (std::int64_t k = 0; k < f.window * f.window; ++k) data.push_back(b.element(m, {Expr(k), t.number, t.channel}));
  const Nodes y = transform_both_sides(b, f.output, data, transform_columns);
  for (std::size_t k = 0; k < y.size(); ++k) {
    const auto i = static_cast<std::int64_t>(k) / f.tile, j = static_cast<std::int64_t>(k) % f.tile;
    const Expr row = t.y * Expr(f.tile) + Expr(i), column = t.x * Expr(f.tile) + Expr(j);
    std::vector<Expr> guard;
    add_condition(guard, shape[2] - 1 - row);
    add_condition(guard, shape[3] - 1 - column);
    b.parts.push_back({{t.n, t.channel, row, column}, y[k], std::move(guard)});
  }
  b.bind(result, b.parts[0].coords, b.parts[0].node);
}

void lower_winograd_gradient(KernelBuilder& b, const Node& node) {
  const Value *y = node.inputs[0], *result = node.output();
  const Winograd& f = winograd(node.get<std::int64_t>("tile"));
  const Shape& shape = y->type.shape;
  const TileAxes t = add_tile_axes(b, shape[0], shape[2], shape[3], shape[1], f.tile);
  Nodes data;
  for (std::int64_t i = 0; i < f.tile; ++i) {
    for (std::int64_t j = 0; j < f.tile; ++j) {
      const Expr row = t.y * Expr(f.tile) + Expr(i), column = t.x * Expr(f.tile) + Expr(j);
      std::vector<Expr> guard;
      add_condition(guard, shape[2] - 1 - row);
      add_condition(guard, shape[3] - 1 - column);
      data.push_back(b.guarded(b.element(y, {t.n, t.channel, row, column}, guard), {}, guard, 0));
    }
  }
  const Nodes m = transform_both_sides(b, transposed(f.output), data, transform_rows);
  for (std::size_t k = 0; k < m.size(); ++k)
    b.parts.push_back({{Expr(static_cast<std::int64_t>(k)), t.channel, t.number}, m[k], {}});
  b.bind(result, b.parts[0].coords, b.parts[0].node);
}

void lower_winograd_filter_gradient(KernelBuilder& b, const Node& node) {
  const Value *u = node.inputs[0], *result = node.output();
  const Winograd& f = winograd(node.get<std::int64_t>("tile"));
  const Expr feature = b.add_axis("feature", u->type.shape[1]), channel = b.add_axis("channel", u->type.shape[2]);
  Nodes data;
  for (std::int64_t k = 0; k < f.window * f.window; ++k) data.push_back(b.element(u, {Expr(k), feature, channel}));
  const Nodes w = transform_both_sides(b, transposed(f.filter), data, transform_columns);
  const auto taps = static_cast<std::int64_t>(w.size());
  for (std::int64_t tap = 0; tap < taps; ++tap)
    b.parts.push_back({{feature, channel * Expr(taps) + Expr(tap)}, w[static_cast<std::size_t>(tap)], {}});
  b.bind(result, b.parts[0].coords, b.parts[0].node);
}

}  // namespace oclc

// Weight gradients of 3x3 convolutions by Winograd: the adjoint of winograd_input, products and winograd_output. With a tile's
// window D, its gradient Y and F(m x m)'s matrices, the weights' gradient is
//   filter^T (sum over tiles of (input D input^T) * (output^T Y output)) filter
// which takes (m + 2)^2 products where the sum over positions takes 9 m^2.
#include <fmt/format.h>

#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/ops/winograd.h"

namespace oclc {
namespace {

constexpr std::int64_t kTaps = kWinogradFilter * kWinogradFilter;

std::vector<TensorType> infer_winograd_gradient(const Node& node) {
  const TensorType& y = type_of_input(node, 0);
  if (y.rank() != 4 || !is_float(y.dtype)) reject("floating-point y[N, O, H, W]", y.text());
  const Winograd& f = winograd_of(node);
  const Expr tiles = y.shape[0] * ceil_div(y.shape[2], Expr(f.tile)) * ceil_div(y.shape[3], Expr(f.tile));
  return {{y.dtype, {Expr(f.window * f.window), y.shape[1], tiles}}};
}

std::vector<HostTensor> eval_winograd_gradient(const Node& node, std::span<const HostTensor> inputs,
                                               const SymbolValues& symbols) {
  const HostTensor& y = inputs[0];
  HostTensor m(y.dtype(), bind_shape(node.output()->type.shape, symbols));
  const Winograd& f = winograd_of(node);
  const Matrix spread = transposed(f.output);
  const std::int64_t features = y.shape()[1], height = y.shape()[2], width = y.shape()[3], tiles = m.shape()[2];
  const std::int64_t across = (width + f.tile - 1) / f.tile, down = (height + f.tile - 1) / f.tile;
  const auto tile = static_cast<std::size_t>(f.tile), window = static_cast<std::size_t>(f.window);
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t n = t / (across * down), top = t / across % down * f.tile, left = t % across * f.tile;
    for (std::int64_t o = 0; o < features; ++o) {
      Matrix data(tile, std::vector<double>(tile, 0));
      for (std::int64_t i = 0; i < f.tile && top + i < height; ++i) {
        for (std::int64_t j = 0; j < f.tile && left + j < width; ++j)
          data[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
              y.at(((n * features + o) * height + top + i) * width + left + j);
      }
      const Matrix result = on_both_sides(spread, data);
      for (std::size_t k = 0; k < window * window; ++k)
        m.set((static_cast<std::int64_t>(k) * features + o) * tiles + t, result[k / window][k % window]);
    }
  }
  return {std::move(m)};
}

Cost winograd_gradient_cost(const Node& node) {
  const Shape& m = node.output()->type.shape;
  return transform_cost(m[1] * m[2], winograd_of(node).output);
}

std::vector<TensorType> infer_winograd_filter_gradient(const Node& node) {
  const TensorType& u = type_of_input(node, 0);
  const Winograd& f = winograd_of(node);
  if (u.rank() != 3 || !is_float(u.dtype) || !(u.shape[0] == Expr(f.window * f.window)))
    reject(fmt::format("floating-point u[{}, O, C]", f.window * f.window), u.text());
  return {{u.dtype, {u.shape[1], u.shape[2] * Expr(kTaps)}}};
}

std::vector<HostTensor> eval_winograd_filter_gradient(const Node& node, std::span<const HostTensor> inputs,
                                                      const SymbolValues& symbols) {
  const HostTensor& u = inputs[0];
  HostTensor w(u.dtype(), bind_shape(node.output()->type.shape, symbols));
  const Winograd& f = winograd_of(node);
  const Matrix adjoint = transposed(f.filter);
  const auto window = static_cast<std::size_t>(f.window);
  const std::int64_t filters = u.shape()[1] * u.shape()[2];
  for (std::int64_t i = 0; i < filters; ++i) {
    Matrix data(window, std::vector<double>(window));
    for (std::size_t k = 0; k < window * window; ++k)
      data[k / window][k % window] = u.at(static_cast<std::int64_t>(k) * filters + i);
    const Matrix result = on_both_sides(adjoint, data);
    for (std::int64_t tap = 0; tap < kTaps; ++tap)
      w.set(i * kTaps + tap,
            result[static_cast<std::size_t>(tap / kWinogradFilter)][static_cast<std::size_t>(tap % kWinogradFilter)]);
  }
  return {std::move(w)};
}

Cost winograd_filter_gradient_cost(const Node& node) {
  const Shape& u = node.inputs[0]->type.shape;
  return transform_cost(u[1] * u[2], winograd_of(node).filter);
}

constexpr OpDef kWinogradGradientOps[] = {
    {.name = "winograd_gradient",
     .kind = OpKind::window,
     .formula = "m[k, o, t] = element k of output^T Y output, Y being tile t of y[n, o], 0 outside of it",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_winograd_gradient,
     .eval = eval_winograd_gradient,
     .cost = winograd_gradient_cost},
    {.name = "winograd_filter_gradient",
     .kind = OpKind::window,
     .formula = "w[o, c * 9 + tap] = element tap of filter^T U filter, U being the window u[.., o, c]",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_winograd_filter_gradient,
     .eval = eval_winograd_filter_gradient,
     .cost = winograd_filter_gradient_cost},
};

}  // namespace

std::span<const OpDef> winograd_gradient_ops() { return kWinogradGradientOps; }

}  // namespace oclc

// Operators that passes rewrite convolutions to; no front end makes them.
#include <fmt/format.h>

#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/ops/window_rules.h"
#include "compiler/ops/winograd.h"

namespace oclc {
namespace {

using Ints = std::vector<std::int64_t>;

std::vector<TensorType> infer_unfold(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  check_spatial_rank(x);
  const auto& kernel = node.get<Ints>("kernel");
  const std::int64_t group = node.get<std::int64_t>("group");
  if (group < 1 || !(floor_mod(x.shape[1], Expr(group)) == Expr(0)))
    reject(fmt::format("channels divisible by {} groups", group), x.text());
  Shape shape;
  if (group > 1) shape.emplace_back(group);
  shape.push_back(x.shape[0]);
  for (const Expr& positions : window_shape(node, x, kernel)) shape.push_back(positions);
  for (const std::int64_t k : kernel) shape.emplace_back(k);
  shape.push_back(floor_div(x.shape[1], Expr(group)));
  return {{x.dtype, std::move(shape)}};
}

std::vector<HostTensor> eval_unfold(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor& x = inputs[0];
  HostTensor y(x.dtype(), bind_shape(node.output()->type.shape, symbols));
  const auto &kernel = node.get<Ints>("kernel"), &strides = node.get<Ints>("strides"), &dilations = node.get<Ints>("dilations"),
             &pads = node.get<Ints>("pads");
  const std::int64_t group = node.get<std::int64_t>("group");
  const std::size_t axes = kernel.size(), lead = group > 1 ? 1 : 0;
  const Sizes x_strides = row_major_strides(x.shape());
  Sizes index(y.shape().size(), 0);
  for (std::int64_t i = 0, n = y.elements(); i < n; ++i) {
    const std::int64_t channel = (lead ? index[0] * y.shape().back() : 0) + index.back();
    std::int64_t at = index[lead] * x_strides[0] + channel * x_strides[1];
    bool inside = true;
    for (std::size_t k = 0; k < axes; ++k) {
      const std::int64_t position = index[lead + 1 + k] * strides[k] + index[lead + 1 + axes + k] * dilations[k] - pads[k];
      inside = inside && position >= 0 && position < x.shape()[k + 2];
      at += position * x_strides[k + 2];
    }
    if (inside) copy_element(y, i, x, at);
    for (std::size_t k = index.size(); k-- > 0;) {
      if (++index[k] < y.shape()[k]) break;
      index[k] = 0;
    }
  }
  return {std::move(y)};
}

std::vector<TensorType> infer_spread(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  const auto& sizes = node.get<std::vector<Expr>>("sizes");
  if (sizes.size() != x.rank() || node.get<Ints>("starts").size() != x.rank() || node.get<Ints>("strides").size() != x.rank())
    reject("a start, a stride and a size for each axis", text_of(sizes));
  return {{x.dtype, sizes}};
}

std::vector<HostTensor> eval_spread(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor& x = inputs[0];
  HostTensor y(x.dtype(), bind_shape(node.output()->type.shape, symbols));
  const auto &starts = node.get<Ints>("starts"), &strides = node.get<Ints>("strides");
  const Sizes to = row_major_strides(y.shape()), from = row_major_strides(x.shape());
  for (std::int64_t i = 0, n = x.elements(); i < n; ++i) {
    std::int64_t at = 0;
    bool inside = true;
    for (std::size_t a = 0; a < starts.size(); ++a) {
      const std::int64_t position = starts[a] + i / from[a] % x.shape()[a] * strides[a];
      inside = inside && position >= 0 && position < y.shape()[a];
      at += position * to[a];
    }
    if (inside) copy_element(y, at, x, i);
  }
  return {std::move(y)};
}

std::vector<TensorType> infer_store(const Node& node) { return {type_of_input(node, 0)}; }

std::vector<HostTensor> eval_store(const Node&, std::span<const HostTensor> inputs, const SymbolValues&) { return {inputs[0]}; }

void check_image(const TensorType& x) {
  if (x.rank() != 4 || !is_float(x.dtype)) reject("floating-point x[N, C, H, W]", x.text());
}

Expr tiles_of(const Expr& n, const Expr& height, const Expr& width, std::int64_t tile) {
  return n * ceil_div(height, Expr(tile)) * ceil_div(width, Expr(tile));
}

// Positions of the convolution: a filter of three taps, stride 1.
Expr filtered(const Expr& size, std::int64_t before, std::int64_t after) {
  return size + Expr(before + after - (kWinogradFilter - 1));
}

std::vector<TensorType> infer_winograd_input(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  check_image(x);
  const auto& pads = node.get<Ints>("pads");
  const Winograd& f = winograd_of(node);
  const Expr height = filtered(x.shape[2], pads.at(0), pads.at(2)), width = filtered(x.shape[3], pads.at(1), pads.at(3));
  return {{x.dtype, {Expr(f.window * f.window), x.shape[1], tiles_of(x.shape[0], height, width, f.tile)}}};
}

std::vector<HostTensor> eval_winograd_input(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor& x = inputs[0];
  HostTensor v(x.dtype(), bind_shape(node.output()->type.shape, symbols));
  const Winograd& f = winograd_of(node);
  const auto& pads = node.get<Ints>("pads");
  const std::int64_t channels = x.shape()[1], height = x.shape()[2], width = x.shape()[3], tiles = v.shape()[2];
  const std::int64_t across = (width + pads[1] + pads[3] - kWinogradFilter) / f.tile + 1,
                     down = (height + pads[0] + pads[2] - kWinogradFilter) / f.tile + 1;
  Matrix data(static_cast<std::size_t>(f.window), std::vector<double>(static_cast<std::size_t>(f.window)));
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t n = t / (across * down), top = t / across % down * f.tile - pads[0],
                       left = t % across * f.tile - pads[1];
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < f.window; ++i) {
        for (std::int64_t j = 0; j < f.window; ++j) {
          const std::int64_t row = top + i, column = left + j;
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          data[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
              inside ? x.at(((n * channels + c) * height + row) * width + column) : 0;
        }
      }
      const Matrix result = on_both_sides(f.input, data);
      for (std::int64_t k = 0; k < f.window * f.window; ++k)
        v.set((k * channels + c) * tiles + t,
              result[static_cast<std::size_t>(k / f.window)][static_cast<std::size_t>(k % f.window)]);
    }
  }
  return {std::move(v)};
}

Cost winograd_input_cost(const Node& node) {
  const Shape& v = node.output()->type.shape;
  return transform_cost(v[1] * v[2], winograd_of(node).input);
}

std::vector<TensorType> infer_winograd_output(const Node& node) {
  const TensorType& y = type_of_input(node, 0);
  const Winograd& f = winograd_of(node);
  const auto& shape = node.get<std::vector<Expr>>("shape");
  if (shape.size() != 4) reject("a shape [N, O, H, W]", text_of(shape));
  const TensorType wanted{y.dtype, {Expr(f.window * f.window), tiles_of(shape[0], shape[2], shape[3], f.tile), shape[1]}};
  if (!(y == wanted)) reject(wanted.text(), y.text());
  return {{y.dtype, shape}};
}

std::vector<HostTensor> eval_winograd_output(const Node& node, std::span<const HostTensor> inputs,
                                             const SymbolValues& symbols) {
  const HostTensor& m = inputs[0];
  HostTensor y(m.dtype(), bind_shape(node.output()->type.shape, symbols));
  const Winograd& f = winograd_of(node);
  const std::int64_t features = y.shape()[1], height = y.shape()[2], width = y.shape()[3], tiles = m.shape()[1];
  const std::int64_t across = (width + f.tile - 1) / f.tile, down = (height + f.tile - 1) / f.tile;
  Matrix data(static_cast<std::size_t>(f.window), std::vector<double>(static_cast<std::size_t>(f.window)));
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t n = t / (across * down), top = t / across % down * f.tile, left = t % across * f.tile;
    for (std::int64_t o = 0; o < features; ++o) {
      for (std::int64_t k = 0; k < f.window * f.window; ++k)
        data[static_cast<std::size_t>(k / f.window)][static_cast<std::size_t>(k % f.window)] =
            m.at((k * tiles + t) * features + o);
      const Matrix result = on_both_sides(f.output, data);
      for (std::int64_t i = 0; i < f.tile && top + i < height; ++i) {
        for (std::int64_t j = 0; j < f.tile && left + j < width; ++j)
          y.set(((n * features + o) * height + top + i) * width + left + j,
                result[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
      }
    }
  }
  return {std::move(y)};
}

Cost winograd_output_cost(const Node& node) {
  const Shape& m = node.inputs[0]->type.shape;
  return transform_cost(m[1] * m[2], winograd_of(node).output);
}

constexpr OpDef kLoweringOps[] = {
    {.name = "spread",
     .kind = OpKind::movement,
     .formula = "y[.., i, ..] = x[.., (i - start) / stride, ..] where that is a position of x, else 0",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_spread,
     .eval = eval_spread,
     .cost = no_cost},
    {.name = "store",
     .kind = OpKind::movement,
     .formula = "x, in memory in the layout of the result",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_store,
     .eval = eval_store,
     .cost = no_cost},
    {.name = "unfold",
     .kind = OpKind::movement,
     .formula =
         "y[(group,) n, positions.., taps.., c] = x[n, c, position * stride - pad + tap * dilation], 0 outside of x: im2col",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_unfold,
     .eval = eval_unfold,
     .cost = no_cost},
    {.name = "winograd_input",
     .kind = OpKind::window,
     .formula = "v[k, c, t] = the transform of tile t of channel c, element k of its window; x is 0 outside",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_winograd_input,
     .eval = eval_winograd_input,
     .cost = winograd_input_cost},
    {.name = "winograd_output",
     .kind = OpKind::window,
     .formula = "y[n, o, h, w] = the inverse transform of m[k, t, o] at its place in tile t",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_winograd_output,
     .eval = eval_winograd_output,
     .cost = winograd_output_cost},
};

}  // namespace

std::span<const OpDef> lowering_ops() { return kLoweringOps; }

}  // namespace oclc

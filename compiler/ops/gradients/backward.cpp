// Operators that gradients need: adjoints of convolution, pooling and gather, and the moments of a batch. The pass
// expand_gradients writes them in other core operators; what is said here is what they mean.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/ops/window_rules.h"

namespace oclc {
namespace {

using Ints = std::vector<std::int64_t>;
using Exprs = std::vector<Expr>;

Sizes spatial(const Sizes& shape) { return {shape.begin() + 2, shape.end()}; }

// Position of element `tap` of the window at `index` in a plane; nothing outside of it.
std::optional<std::int64_t> window_element(const Node& node, const Sizes& plane, const Sizes& kernel, const Sizes& index,
                                           std::int64_t tap) {
  const auto &strides = node.get<Ints>("strides"), &dilations = node.get<Ints>("dilations"), &pads = node.get<Ints>("pads");
  const Sizes taps = row_major_strides(kernel);
  std::int64_t position = 0;
  for (std::size_t i = 0; i < plane.size(); ++i) {
    const std::int64_t at = index[i] * strides[i] - pads[i] + tap / taps[i] % kernel[i] * dilations[i];
    if (at < 0 || at >= plane[i]) return std::nullopt;
    position = position * plane[i] + at;
  }
  return position;
}

Sizes unravel(std::int64_t at, const Sizes& sizes) {
  Sizes index(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0; at /= sizes[i]) index[i] = at % sizes[i];
  return index;
}

// Calls visit(x, w, y) for every product of conv(x, w) = y, by positions in the three tensors.
template <class F>
void visit_convolution(const Node& node, const Sizes& x, const Sizes& w, const Sizes& y, F&& visit) {
  const std::int64_t group = node.get<std::int64_t>("group");
  const Sizes in = spatial(x), out = spatial(y), kernel = spatial(w);
  const std::int64_t features = y[1], channels = w[1], per_group = features / group;
  for (std::int64_t n = 0; n < y[0]; ++n) {
    for (std::int64_t p = 0; p < count_of(out); ++p) {
      const Sizes index = unravel(p, out);
      for (std::int64_t tap = 0; tap < count_of(kernel); ++tap) {
        const auto at = window_element(node, in, kernel, index, tap);
        if (!at) continue;
        for (std::int64_t o = 0; o < features; ++o) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const std::int64_t channel = o / per_group * channels + c;
            visit((n * x[1] + channel) * count_of(in) + *at, (o * channels + c) * count_of(kernel) + tap,
                  (n * features + o) * count_of(out) + p);
          }
        }
      }
    }
  }
}

HostTensor rounded(const std::vector<double>& sums, DType dtype, const Sizes& shape) {
  HostTensor result(dtype, shape);
  for (std::size_t i = 0; i < sums.size(); ++i) result.set(static_cast<std::int64_t>(i), sums[i]);
  return result;
}

void check_convolution(const Node& node, const TensorType& other) {
  const TensorType& first = type_of_input(node, 0);
  check_spatial_rank(first);
  if (other.dtype != first.dtype || !is_float(first.dtype)) reject("two operands of one floating-point type", other.text());
  if (other.rank() != first.rank()) reject(fmt::format("an operand of rank {}", first.rank()), other.text());
}

std::vector<TensorType> infer_conv_transpose(const Node& node) {
  const TensorType &y = type_of_input(node, 0), &w = type_of_input(node, 1);
  check_convolution(node, w);
  if (!(y.shape[1] == w.shape[0])) reject(fmt::format("weights for {} features", y.shape[1].text()), w.text());
  const auto group = node.get<std::int64_t>("group");
  if (!(floor_mod(w.shape[0], Expr(group)) == Expr(0)))
    reject(fmt::format("a number of features that {} groups are known to divide", group), w.text());
  Shape shape{y.shape[0], w.shape[1] * Expr(group)};
  for (const Expr& size : node.get<Exprs>("output_shape")) shape.push_back(size);
  if (shape.size() != y.rank()) reject("a size for each spatial axis", text_of(shape));
  return {{y.dtype, std::move(shape)}};
}

std::vector<HostTensor> eval_conv_transpose(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor &y = inputs[0], &w = inputs[1];
  const Sizes shape = bind_shape(node.output()->type.shape, symbols);
  std::vector<double> sums(static_cast<std::size_t>(count_of(shape)));
  visit_convolution(node, shape, w.shape(), y.shape(), [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
    sums[static_cast<std::size_t>(xi)] += y.at(yi) * w.at(wi);
  });
  return {rounded(sums, y.dtype(), shape)};
}

std::vector<TensorType> infer_conv_weight_grad(const Node& node) {
  const TensorType &x = type_of_input(node, 0), &y = type_of_input(node, 1);
  check_convolution(node, y);
  Shape shape{y.shape[1], floor_div(x.shape[1], Expr(node.get<std::int64_t>("group")))};
  for (const std::int64_t size : node.get<Ints>("kernel")) shape.emplace_back(size);
  return {{x.dtype, std::move(shape)}};
}

std::vector<HostTensor> eval_conv_weight_grad(const Node& node, std::span<const HostTensor> inputs,
                                              const SymbolValues& symbols) {
  const HostTensor &x = inputs[0], &y = inputs[1];
  const Sizes shape = bind_shape(node.output()->type.shape, symbols);
  std::vector<double> sums(static_cast<std::size_t>(count_of(shape)));
  visit_convolution(node, x.shape(), shape, y.shape(), [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
    sums[static_cast<std::size_t>(wi)] += x.at(xi) * y.at(yi);
  });
  return {rounded(sums, x.dtype(), shape)};
}

Cost conv_transpose_cost(const Node& node) {
  return {Expr(2) * node.inputs[0]->type.elements() * product(std::span(node.inputs[1]->type.shape).subspan(1))};
}
Cost conv_weight_grad_cost(const Node& node) {
  return {Expr(2) * node.inputs[1]->type.elements() * product(std::span(node.output()->type.shape).subspan(1))};
}

std::vector<TensorType> infer_max_pool_index(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  check_spatial_rank(x);
  Shape shape{x.shape[0], x.shape[1]};
  for (const Expr& dim : window_shape(node, x, node.get<Ints>("kernel"), true)) shape.push_back(dim);
  return {{DType::i32, std::move(shape)}};
}

std::vector<HostTensor> eval_max_pool_index(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor& x = inputs[0];
  HostTensor index(DType::i32, bind_shape(node.output()->type.shape, symbols));
  const auto& kernel = node.get<Ints>("kernel");
  const Sizes plane = spatial(x.shape()), positions = spatial(index.shape());
  for (std::int64_t i = 0; i < index.elements(); ++i) {
    const std::int64_t start = i / count_of(positions) * count_of(plane);
    double best = 0;
    std::int64_t best_tap = -1;
    for (std::int64_t tap = 0; tap < count_of(kernel); ++tap) {
      const auto at = window_element(node, plane, kernel, unravel(i % count_of(positions), positions), tap);
      if (!at) continue;
      const double v = x.at(start + *at);
      if (best_tap >= 0 && (v <= best || best != best)) continue;
      best = v;
      best_tap = tap;
    }
    index.set_int(i, best_tap);
  }
  return {std::move(index)};
}

std::vector<TensorType> infer_pool_grad(const Node& node) {
  const TensorType& dy = type_of_input(node, node.op->name == "max_pool_grad" ? 1 : 0);
  check_spatial_rank(dy);
  Shape shape{dy.shape[0], dy.shape[1]};
  for (const Expr& size : node.get<Exprs>("input_shape")) shape.push_back(size);
  return {{dy.dtype, std::move(shape)}};
}

std::vector<HostTensor> eval_max_pool_grad(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor &index = inputs[0], &dy = inputs[1];
  const Sizes shape = bind_shape(node.output()->type.shape, symbols), plane = spatial(shape), positions = spatial(dy.shape());
  std::vector<double> sums(static_cast<std::size_t>(count_of(shape)));
  for (std::int64_t i = 0; i < dy.elements(); ++i) {
    const auto at =
        window_element(node, plane, node.get<Ints>("kernel"), unravel(i % count_of(positions), positions), index.int_at(i));
    if (at) sums[static_cast<std::size_t>(i / count_of(positions) * count_of(plane) + *at)] += dy.at(i);
  }
  return {rounded(sums, dy.dtype(), shape)};
}

std::vector<HostTensor> eval_avg_pool_grad(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor& dy = inputs[0];
  const auto &kernel = node.get<Ints>("kernel"), &strides = node.get<Ints>("strides"), &dilations = node.get<Ints>("dilations"),
             &pads = node.get<Ints>("pads");
  const bool with_padding = node.get<std::int64_t>("count_include_pad") != 0;
  const Sizes shape = bind_shape(node.output()->type.shape, symbols), plane = spatial(shape), positions = spatial(dy.shape());
  std::vector<double> sums(static_cast<std::size_t>(count_of(shape)));
  for (std::int64_t i = 0; i < dy.elements(); ++i) {
    const Sizes index = unravel(i % count_of(positions), positions);
    Ints inside;
    std::int64_t padded = 1;
    for (std::int64_t tap = 0; tap < count_of(kernel); ++tap) {
      if (const auto at = window_element(node, plane, kernel, index, tap)) inside.push_back(*at);
    }
    for (std::size_t a = 0; a < plane.size(); ++a) {
      std::int64_t count = 0;
      for (std::int64_t k = 0; k < kernel[a]; ++k)
        count += index[a] * strides[a] - pads[a] + k * dilations[a] < plane[a] + pads[a + plane.size()] ? 1 : 0;
      padded *= count;
    }
    const auto count = static_cast<double>(with_padding ? padded : static_cast<std::int64_t>(inside.size()));
    for (const std::int64_t at : inside)
      sums[static_cast<std::size_t>(i / count_of(positions) * count_of(plane) + at)] += dy.at(i) / count;
  }
  return {rounded(sums, dy.dtype(), shape)};
}

Cost pool_cost(const Node& node) {
  Expr flops = node.inputs.back()->type.elements();
  for (const std::int64_t k : node.get<Ints>("kernel")) flops *= Expr(k);
  return {flops};
}

std::vector<TensorType> infer_scatter_add(const Node& node) {
  const TensorType &indices = type_of_input(node, 0), &updates = type_of_input(node, 1);
  if (!is_integer(indices.dtype)) reject("integer indices", indices.text());
  const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
  const auto& size = node.get<Exprs>("size");
  if (size.size() != 1 || updates.rank() < axis + indices.rank() ||
      !std::equal(indices.shape.begin(), indices.shape.end(), updates.shape.begin() + static_cast<std::ptrdiff_t>(axis)))
    reject(fmt::format("updates with the indices' shape {} from axis {} on", text_of(indices.shape), axis), updates.text());
  const auto at = updates.shape.begin() + static_cast<std::ptrdiff_t>(axis);
  Shape shape(updates.shape.begin(), at);
  shape.push_back(size[0]);
  shape.insert(shape.end(), at + static_cast<std::ptrdiff_t>(indices.rank()), updates.shape.end());
  return {{updates.dtype, std::move(shape)}};
}

std::vector<HostTensor> eval_scatter_add(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor &indices = inputs[0], &updates = inputs[1];
  const Sizes shape = bind_shape(node.output()->type.shape, symbols);
  const AxisView view(shape, static_cast<std::size_t>(node.get<std::int64_t>("axis")));
  std::vector<double> sums(static_cast<std::size_t>(count_of(shape)));
  for (std::int64_t i = 0; i < updates.elements(); ++i) {
    const std::int64_t inner = i % view.inner, j = i / view.inner % indices.elements(),
                       outer = i / view.inner / indices.elements();
    std::int64_t row = indices.int_at(j);
    if (row < 0) row += view.size;
    if (row < 0 || row >= view.size) reject(fmt::format("an index from 0 to {}", view.size - 1), std::to_string(row));
    sums[static_cast<std::size_t>((outer * view.size + row) * view.inner + inner)] += updates.at(i);
  }
  return {rounded(sums, updates.dtype(), shape)};
}

std::vector<TensorType> infer_moments(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  if (!is_float(x.dtype)) reject("floating-point operands", x.text());
  TensorType result = x;
  for (const std::int64_t axis : node.get<Ints>("axes")) result.shape.at(static_cast<std::size_t>(axis)) = Expr(1);
  return {result, result};
}

std::vector<HostTensor> eval_moments(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor& x = inputs[0];
  const Sizes shape = bind_shape(node.output()->type.shape, symbols), strides = row_major_strides(shape);
  const double count = static_cast<double>(x.elements()) / static_cast<double>(count_of(shape));
  std::vector<double> mean(static_cast<std::size_t>(count_of(shape))), square(mean.size());
  const auto each = [&](const auto& visit) {
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const Sizes index = unravel(i, x.shape());
      std::int64_t at = 0;
      for (std::size_t a = 0; a < index.size(); ++a) at += shape[a] == 1 ? 0 : index[a] * strides[a];
      visit(static_cast<std::size_t>(at), x.at(i));
    }
  };
  each([&](std::size_t at, double v) { mean[at] += v / count; });
  each([&](std::size_t at, double v) { square[at] += (v - mean[at]) * (v - mean[at]) / count; });
  return {rounded(mean, x.dtype(), shape), rounded(square, x.dtype(), shape)};
}

Cost updates_cost(const Node& node) { return {node.inputs[1]->type.elements()}; }
Cost moments_cost(const Node& node) { return {node.inputs[0]->type.elements() * Expr(4)}; }

constexpr OpDef kBackwardOps[] = {
    {.name = "conv_transpose",
     .kind = OpKind::contraction,
     .formula = "x[n, c, i] = sum over o and taps r with i = p * stride + r * dilation - pad of y[n, o, p] * w[o, c, r]",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_conv_transpose,
     .eval = eval_conv_transpose,
     .cost = conv_transpose_cost,
     .gradient = conv_transpose_gradient},
    {.name = "conv_weight_grad",
     .kind = OpKind::contraction,
     .formula = "w[o, c, r] = sum over n and p of y[n, o, p] * x[n, c, p * stride + r * dilation - pad]",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_conv_weight_grad,
     .eval = eval_conv_weight_grad,
     .cost = conv_weight_grad_cost,
     .gradient = conv_weight_grad_gradient},
    {.name = "max_pool_index",
     .kind = OpKind::window,
     .formula = "the position of the first maximum in its window, row-major over the taps",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_max_pool_index,
     .eval = eval_max_pool_index,
     .cost = pool_cost,
     .gradient = no_gradient},
    {.name = "max_pool_grad",
     .kind = OpKind::window,
     .formula = "dx[i] = sum of dy over the windows whose maximum is i",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_pool_grad,
     .eval = eval_max_pool_grad,
     .cost = pool_cost,
     .gradient = max_pool_grad_gradient},
    {.name = "avg_pool_grad",
     .kind = OpKind::window,
     .formula = "dx[i] = sum of dy / count over the windows that hold i",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_pool_grad,
     .eval = eval_avg_pool_grad,
     .cost = pool_cost,
     .gradient = avg_pool_grad_gradient},
    {.name = "scatter_add",
     .kind = OpKind::indexing,
     .formula = "y[.., v, ..] = sum over j with indices[j] = v of updates[.., j, ..]; negative indices count from the end",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_scatter_add,
     .eval = eval_scatter_add,
     .cost = updates_cost,
     .gradient = scatter_add_gradient},
    {.name = "moments",
     .kind = OpKind::row,
     .formula = "mean, and mean of (x - mean)^2, over the axes, which stay with size 1",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_moments,
     .eval = eval_moments,
     .cost = moments_cost,
     .gradient = moments_gradient},
};

}  // namespace

std::span<const OpDef> backward_ops() { return kBackwardOps; }

}  // namespace oclc

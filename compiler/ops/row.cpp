// Row operators: reductions over the trailing axes with elementwise work between. Statistics are kept in f32 or wider.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

const TensorType& float_input(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  if (!is_float(x.dtype)) reject("floating-point operands", x.text());
  const std::int64_t axis = node.get<std::int64_t>("axis");
  if (normalise_axis(axis, x.rank()) != axis) reject("an axis from 0 on", std::to_string(axis));
  return x;
}

std::vector<TensorType> infer_softmax(const Node& node) { return {float_input(node)}; }

std::vector<TensorType> infer_norm(const Node& node) {
  const TensorType& x = float_input(node);
  node.get<double>("epsilon");
  const TensorType wanted{x.dtype,
                          Shape(x.shape.begin() + static_cast<std::ptrdiff_t>(node.get<std::int64_t>("axis")), x.shape.end())};
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (i > 1 && !has_input(node, i)) continue;
    if (type_of_input(node, i) != wanted) {
      reject(fmt::format("{} of the normalised axes' type {}", i == 1 ? "a scale" : "a bias", wanted.text()),
             type_of_input(node, i).text());
    }
  }
  return {x};
}

template <bool logarithm>
std::vector<HostTensor> eval_softmax(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor& x = inputs[0];
  HostTensor result(x.dtype(), x.shape());
  const AxisView view(x.shape(), static_cast<std::size_t>(node.get<std::int64_t>("axis")));
  std::vector<double> row(static_cast<std::size_t>(view.size));
  for (std::int64_t o = 0; o < view.outer; ++o) {
    for (std::int64_t r = 0; r < view.inner; ++r) {
      const auto position = [&](std::size_t k) { return (o * view.size + static_cast<std::int64_t>(k)) * view.inner + r; };
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (std::size_t k = 0; k < row.size(); ++k) {
        row[k] = x.at(position(k));
        top = row[k] > top || row[k] != row[k] ? row[k] : top;
      }
      for (const double v : row) sum += std::exp(v - top);
      for (std::size_t k = 0; k < row.size(); ++k)
        result.set(position(k), logarithm ? row[k] - top - std::log(sum) : std::exp(row[k] - top) / sum);
    }
  }
  return {std::move(result)};
}

template <bool centred>
std::vector<HostTensor> eval_norm(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor &x = inputs[0], &scale = inputs[1];
  const bool has_bias = has_input(node, 2);
  const double epsilon = node.get<double>("epsilon");
  HostTensor result(x.dtype(), x.shape());
  const std::int64_t size = scale.elements(), rows = size == 0 ? 0 : x.elements() / size;
  for (std::int64_t r = 0; r < rows; ++r) {
    double mean = 0, square = 0;
    for (std::int64_t k = 0; centred && k < size; ++k) mean += x.at(r * size + k) / static_cast<double>(size);
    for (std::int64_t k = 0; k < size; ++k) square += std::pow(x.at(r * size + k) - mean, 2) / static_cast<double>(size);
    for (std::int64_t k = 0; k < size; ++k) {
      const double y = (x.at(r * size + k) - mean) / std::sqrt(square + epsilon) * scale.at(k);
      result.set(r * size + k, has_bias ? y + inputs[2].at(k) : y);
    }
  }
  return {std::move(result)};
}

Cost softmax_cost(const Node& node) { return {node.inputs[0]->type.elements() * Expr(14)}; }
Cost norm_cost(const Node& node) { return {node.inputs[0]->type.elements() * Expr(8)}; }

constexpr OpDef kRowOps[] = {
    {.name = "softmax",
     .kind = OpKind::row,
     .formula = "e^(x - max) / sum of e^(x - max) along axis",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_softmax,
     .eval = eval_softmax<false>,
     .cost = softmax_cost,
     .gradient = softmax_gradient},
    {.name = "log_softmax",
     .kind = OpKind::row,
     .formula = "x - max - log(sum of e^(x - max)) along axis",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_softmax,
     .eval = eval_softmax<true>,
     .cost = softmax_cost,
     .gradient = log_softmax_gradient},
    {.name = "layer_norm",
     .kind = OpKind::row,
     .formula = "(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = infer_norm,
     .eval = eval_norm<true>,
     .cost = norm_cost,
     .gradient = norm_gradient},
    {.name = "rms_norm",
     .kind = OpKind::row,
     .formula = "x / sqrt(mean of x^2 + epsilon) * scale over the axes from `axis` on",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_norm,
     .eval = eval_norm<false>,
     .cost = norm_cost,
     .gradient = norm_gradient},
};

}  // namespace

std::span<const OpDef> row_ops() { return kRowOps; }

}  // namespace oclc

// Row operators: reductions over the trailing axes with elementwise work between. Statistics are kept in f32 or wider.
#include <fmt/format.h>

#include "compiler/ops/op_list.h"
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

Cost softmax_cost(const Node& node) { return {node.inputs[0]->type.elements() * Expr(14)}; }
Cost norm_cost(const Node& node) { return {node.inputs[0]->type.elements() * Expr(8)}; }

constexpr OpDef kOps[] = {
    {.name = "softmax",
     .kind = OpKind::row,
     .formula = "e^(x - max) / sum of e^(x - max) along axis",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_softmax,
     .cost = softmax_cost},
    {.name = "log_softmax",
     .kind = OpKind::row,
     .formula = "x - max - log(sum of e^(x - max)) along axis",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_softmax,
     .cost = softmax_cost},
    {.name = "layer_norm",
     .kind = OpKind::row,
     .formula = "(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = infer_norm,
     .cost = norm_cost},
    {.name = "rms_norm",
     .kind = OpKind::row,
     .formula = "x / sqrt(mean of x^2 + epsilon) * scale over the axes from `axis` on",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_norm,
     .cost = norm_cost},
};

}  // namespace

std::span<const OpDef> row_ops() { return kOps; }

}  // namespace oclc

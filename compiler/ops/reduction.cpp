// Reductions over axes. Floats accumulate in f32 or wider; an empty list of axes reduces nothing.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ops/op_list.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

Shape reduced_shape(const Shape& shape, const std::vector<std::int64_t>& axes, bool keepdims) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (!gone) result.push_back(shape[i]);
    if (gone && keepdims) result.emplace_back(1);
  }
  return result;
}

void check_axes(const std::vector<std::int64_t>& axes, std::size_t rank) {
  if (normalise_axes(axes, rank) != axes) reject("sorted axes from 0 on", fmt::format("[{}]", fmt::join(axes, ", ")));
}

std::vector<TensorType> infer_reduce(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  const auto& axes = node.get<std::vector<std::int64_t>>("axes");
  check_axes(axes, x.rank());
  const bool orders = node.op->name == "reduce_max" || node.op->name == "reduce_min";
  if (x.dtype == DType::boolean && !orders) reject("numbers", x.text());
  return {{x.dtype, reduced_shape(x.shape, axes, node.get<std::int64_t>("keepdims") != 0)}};
}

std::vector<TensorType> infer_arg(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  if (x.dtype == DType::boolean) reject("numbers", x.text());
  const std::int64_t axis = node.get<std::int64_t>("axis");
  check_axes({axis}, x.rank());
  if (x.shape[static_cast<std::size_t>(axis)] == Expr(0))
    reject("an axis with elements", fmt::format("axis {} of {}", axis, x.text()));
  return {{DType::i64, reduced_shape(x.shape, {axis}, node.get<std::int64_t>("keepdims") != 0)}};
}

Cost cost(const Node& node) { return {node.inputs[0]->type.elements()}; }

constexpr OpDef reduction(std::string_view name, std::string_view formula) {
  return {.name = name,
          .kind = OpKind::reduction,
          .formula = formula,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_reduce,
          .cost = cost};
}

constexpr OpDef arg(std::string_view name, std::string_view formula) {
  return {.name = name,
          .kind = OpKind::reduction,
          .formula = formula,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_arg,
          .cost = cost};
}

constexpr OpDef kOps[] = {
    reduction("reduce_sum", "sum over axes; of nothing 0"),
    reduction("reduce_mean", "sum over axes / number of elements; integers truncate"),
    reduction("reduce_max", "largest over axes, NaN if any is; of nothing the type's lowest value"),
    reduction("reduce_min", "smallest over axes, NaN if any is; of nothing the type's highest value"),
    reduction("reduce_prod", "product over axes; of nothing 1"),
    arg("argmax", "index of the largest along axis, a NaN counts as largest; the first, or with select_last the last"),
    arg("argmin", "index of the smallest along axis, a NaN counts as smallest; the first, or with select_last the last"),
};

}  // namespace

std::span<const OpDef> reduction_ops() { return kOps; }

}  // namespace oclc

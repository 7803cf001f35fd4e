// Reductions over axes. Floats accumulate in f32 or wider; an empty list of axes reduces nothing.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/host_index.h"
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

enum class Fold { sum, mean, max, min, prod };

template <class T>
T combine(Fold fold, T a, T b) {
  switch (fold) {
    case Fold::max:
      return b > a || b != b ? b : a;
    case Fold::min:
      return b < a || b != b ? b : a;
    case Fold::prod:
      return a * b;
    default:
      return a + b;
  }
}

// NaN, once there, stays: comparisons with it are false.
template <>
double combine(Fold fold, double a, double b) {
  if (fold == Fold::max) return a != a || !(b > a || b != b) ? a : b;
  if (fold == Fold::min) return a != a || !(b < a || b != b) ? a : b;
  return fold == Fold::prod ? a * b : a + b;
}

// What an empty reduction gives, as an integer of the type.
std::int64_t integer_start(Fold fold, DType dtype) {
  if (fold == Fold::prod) return 1;
  if (fold != Fold::max && fold != Fold::min) return 0;
  const bool highest = fold == Fold::min;
  if (dtype == DType::boolean) return highest ? 1 : 0;
  const auto bits = static_cast<unsigned>(8 * size_bytes(dtype));
  if (is_signed(dtype)) {
    const std::int64_t top = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
    return highest ? top : -top - 1;
  }
  return highest ? static_cast<std::int64_t>(~std::uint64_t{0} >> (64 - bits)) : 0;
}

double float_start(Fold fold) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return fold == Fold::prod ? 1 : (fold == Fold::max ? -kInfinity : (fold == Fold::min ? kInfinity : 0));
}

// Strides of the kept axes in the result, 0 along the reduced ones: where each element of x goes.
Sizes result_strides(const Sizes& shape, const std::vector<std::int64_t>& axes) {
  Sizes kept = shape;
  for (const std::int64_t axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
  Sizes strides = row_major_strides(kept);
  for (const std::int64_t axis : axes) strides[static_cast<std::size_t>(axis)] = 0;
  return strides;
}

Sizes reduced_sizes(const Sizes& shape, const std::vector<std::int64_t>& axes, bool keepdims) {
  Sizes result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (!gone || keepdims) result.push_back(gone ? 1 : shape[i]);
  }
  return result;
}

template <Fold fold>
std::vector<HostTensor> eval_reduce(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor& x = inputs[0];
  const auto& axes = node.get<std::vector<std::int64_t>>("axes");
  HostTensor result(x.dtype(), reduced_sizes(x.shape(), axes, node.get<std::int64_t>("keepdims") != 0));
  const auto size = static_cast<std::size_t>(result.elements());
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= x.shape()[static_cast<std::size_t>(axis)];
  const std::vector<Sizes> strides{result_strides(x.shape(), axes)};
  if (is_float(x.dtype())) {
    std::vector<double> sums(size, float_start(fold));
    walk(x.shape(), strides, [&](std::int64_t i, const Sizes& at) {
      double& sum = sums[static_cast<std::size_t>(at[0])];
      sum = combine(fold, sum, x.at(i));
    });
    for (std::size_t i = 0; i < size; ++i)
      result.set(static_cast<std::int64_t>(i), fold == Fold::mean ? sums[i] / static_cast<double>(count) : sums[i]);
    return {std::move(result)};
  }
  // Unsigned arithmetic wraps; order is the signed one except for u64.
  std::vector<std::uint64_t> sums(size, static_cast<std::uint64_t>(integer_start(fold, x.dtype())));
  const bool ordered = fold == Fold::max || fold == Fold::min;
  walk(x.shape(), strides, [&](std::int64_t i, const Sizes& at) {
    std::uint64_t& sum = sums[static_cast<std::size_t>(at[0])];
    const std::int64_t value = x.int_at(i);
    if (ordered && x.dtype() != DType::u64) {
      sum = static_cast<std::uint64_t>(combine(fold, static_cast<std::int64_t>(sum), value));
    } else {
      sum = combine(fold, sum, static_cast<std::uint64_t>(value));
    }
  });
  for (std::size_t i = 0; i < size; ++i) {
    std::int64_t value = static_cast<std::int64_t>(sums[i]);
    if (fold == Fold::mean && count == 0) value = 0;
    if (fold == Fold::mean && count > 0) {
      value = x.dtype() == DType::u64 ? static_cast<std::int64_t>(sums[i] / static_cast<std::uint64_t>(count)) : value / count;
    }
    result.set_int(static_cast<std::int64_t>(i), value);
  }
  return {std::move(result)};
}

template <Fold fold>
std::vector<HostTensor> eval_arg(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor& x = inputs[0];
  const std::int64_t axis = node.get<std::int64_t>("axis");
  const bool last = node.get_or<std::int64_t>("select_last", 0) != 0;
  const AxisView view(x.shape(), static_cast<std::size_t>(axis));
  HostTensor result(DType::i64, reduced_sizes(x.shape(), {axis}, node.get<std::int64_t>("keepdims") != 0));
  const auto better = [&](std::int64_t i, std::int64_t j) {  // is element i in front of element j?
    if (is_float(x.dtype())) {
      const double a = x.at(i), b = x.at(j);
      if (b != b) return false;
      return a != a || (fold == Fold::max ? a > b : a < b);
    }
    if (x.dtype() == DType::u64) {
      const auto a = static_cast<std::uint64_t>(x.int_at(i)), b = static_cast<std::uint64_t>(x.int_at(j));
      return fold == Fold::max ? a > b : a < b;
    }
    return fold == Fold::max ? x.int_at(i) > x.int_at(j) : x.int_at(i) < x.int_at(j);
  };
  for (std::int64_t o = 0; o < view.outer; ++o) {
    for (std::int64_t r = 0; r < view.inner; ++r) {
      const auto position = [&](std::int64_t k) { return (o * view.size + k) * view.inner + r; };
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < view.size; ++k) {
        if (last ? !better(position(best), position(k)) : better(position(k), position(best))) best = k;
      }
      result.set_int(o * view.inner + r, best);
    }
  }
  return {std::move(result)};
}

std::optional<std::vector<Expr>> reduced_content(const Node& node) {
  const Value& x = *node.inputs[0];
  const TensorType& type = node.output(0)->type;
  const std::string_view name = node.op->name;
  if (!x.content || !is_integer(type.dtype) || name == "reduce_mean") return std::nullopt;
  Sizes shape;
  for (const Expr& dim : x.type.shape) shape.push_back(dim.value());
  const auto& axes = node.get<std::vector<std::int64_t>>("axes");
  std::vector<std::optional<Expr>> values(static_cast<std::size_t>(type.elements().value()));
  walk(shape, {result_strides(shape, axes)}, [&](std::int64_t i, const Sizes& at) {
    const Expr& e = (*x.content)[static_cast<std::size_t>(i)];
    auto& value = values[static_cast<std::size_t>(at[0])];
    if (!value) {
      value = e;
    } else {
      value = name == "reduce_sum"
                  ? *value + e
                  : (name == "reduce_prod" ? *value * e : (name == "reduce_max" ? max(*value, e) : min(*value, e)));
    }
  });
  std::vector<Expr> result;
  for (const auto& value : values) {
    if (!value && name != "reduce_sum" && name != "reduce_prod") return std::nullopt;
    result.push_back(value ? *value : Expr(name == "reduce_prod" ? 1 : 0));
  }
  return result;
}

Cost cost(const Node& node) { return {node.inputs[0]->type.elements()}; }

template <Fold fold>
constexpr OpDef reduction(std::string_view name, std::string_view formula) {
  return {.name = name,
          .kind = OpKind::reduction,
          .formula = formula,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_reduce,
          .eval = eval_reduce<fold>,
          .content = reduced_content,
          .cost = cost,
          .gradient = reduce_gradient};
}

template <Fold fold>
constexpr OpDef arg(std::string_view name, std::string_view formula) {
  return {.name = name,
          .kind = OpKind::reduction,
          .formula = formula,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_arg,
          .eval = eval_arg<fold>,
          .cost = cost,
          .gradient = no_gradient};
}

constexpr OpDef kReductionOps[] = {
    reduction<Fold::sum>("reduce_sum", "sum over axes; of nothing 0"),
    reduction<Fold::mean>("reduce_mean", "sum over axes / number of elements; integers truncate"),
    reduction<Fold::max>("reduce_max", "largest over axes, NaN if any is; of nothing the type's lowest value"),
    reduction<Fold::min>("reduce_min", "smallest over axes, NaN if any is; of nothing the type's highest value"),
    reduction<Fold::prod>("reduce_prod", "product over axes; of nothing 1"),
    arg<Fold::max>("argmax",
                   "index of the largest along axis, a NaN counts as largest; the first, or with select_last the last"),
    arg<Fold::min>("argmin",
                   "index of the smallest along axis, a NaN counts as smallest; the first, or with select_last the last"),
};

}  // namespace

std::span<const OpDef> reduction_ops() { return kReductionOps; }

}  // namespace oclc

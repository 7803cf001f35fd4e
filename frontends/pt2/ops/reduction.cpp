// Reductions and running sums.
#include <cmath>

#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// The dimensions that `dim` names, whether it is a number or a list; all if it is absent or empty.
Ints reduced_axes(AtenContext& c, std::size_t rank) { return c.axes("dim", rank); }

Value* over(AtenContext& c, std::string_view op, Value* x, const Ints& axes, bool keepdims) {
  return axes.empty() ? x : c.b.reduce(op, x, axes, keepdims);
}

Outputs reduce(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const bool primitive = c.has("inp");
  Value* x = c.b.cast(c.tensor(primitive ? "inp" : "self"), dtype);
  const Ints axes = c.axes(primitive ? "dims" : "dim", x->type.rank());
  if (dtype != DType::boolean) return {over(c, c.core(), x, axes, c.flag("keepdim"))};
  // The largest and the smallest of truth values.
  return {c.b.cast(over(c, c.core(), c.b.cast(x, DType::i32), axes, c.flag("keepdim")), DType::boolean)};
}

Outputs truth(AtenContext& c) {
  Value* x = c.b.cast(c.b.cast(c.tensor("self"), DType::boolean), DType::i32);
  return {c.b.cast(over(c, c.core(), x, reduced_axes(c, x->type.rank()), c.flag("keepdim")), DType::boolean)};
}

Outputs arg(AtenContext& c) {
  Value* x = c.tensor("self");
  if (x->type.dtype == DType::boolean) x = c.b.cast(x, DType::u8);
  if (!c.has("dim") || x->type.rank() == 0) {
    Value* flat = c.b.reshape(x, {x->type.elements()});
    return {c.b.reshape(c.b.arg(c.core(), flat, 0, false), c.result().shape)};
  }
  return {c.b.arg(c.core(), x, c.axis(c.integer("dim"), x->type.rank()), c.flag("keepdim"))};
}

Outputs extreme_along(AtenContext& c) {
  Value* x = c.tensor("self");
  const bool largest = c.core() == "max";
  if (x->type.rank() == 0) return {x, c.b.scalar(DType::i64, 0)};
  Value* numbers = x->type.dtype == DType::boolean ? c.b.cast(x, DType::u8) : x;
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  const bool keepdims = c.flag("keepdim");
  Value* best = c.b.reduce(largest ? "reduce_max" : "reduce_min", numbers, {axis}, keepdims);
  return {c.b.cast(best, x->type.dtype), c.b.arg(largest ? "argmax" : "argmin", numbers, axis, keepdims)};
}

// Mean of the squared distances from the mean, times n / (n - correction).
Outputs variance(AtenContext& c) {
  Value* x = c.widened(c.tensor("self"));
  const DType dtype = c.result().dtype;
  const Ints axes = reduced_axes(c, x->type.rank());
  const bool keepdims = c.flag("keepdim");
  const Arg* given = c.find("correction");
  const double correction = given ? c.real("correction") : c.flag("unbiased", true) ? 1 : 0;
  Value* mean = over(c, "reduce_mean", x, axes, true);
  Value* apart = c.b.sub(x, mean);
  Value* sum = over(c, "reduce_sum", c.b.mul(apart, apart), axes, keepdims);
  Expr count = 1;
  for (const std::int64_t a : axes) count *= x->type.shape[static_cast<std::size_t>(a)];
  Value* divisor = c.b.add(c.b.cast(c.b.exprs({count}, {}), x->type.dtype), -correction);
  Value* result = c.b.div(sum, c.b.max(divisor, c.b.scalar(x->type.dtype, 0)));
  if (c.core() == "std") result = c.b.sqrt(result);
  Value* average = c.wants(1) ? c.b.cast(over(c, "reduce_mean", x, axes, keepdims), dtype) : nullptr;
  return {c.b.cast(result, dtype), average};
}

Outputs cumulative(AtenContext& c) {
  Value* x = c.b.cast(c.tensor("self"), c.result().dtype);
  if (x->type.rank() == 0) return {x};
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  if (c.core() == "sum") return {c.b.cumsum(x, axis)};
  return onnx_call(c, "CumProd", {x, c.b.ints({axis})});
}

Outputs log_sum_exp(AtenContext& c) {
  Value* x = c.b.cast(c.tensor("self"), c.result().dtype);
  const Ints axes = reduced_axes(c, x->type.rank());
  if (axes.empty()) return {x};
  return onnx_call(c, "ReduceLogSumExp", {x, c.b.ints(axes)}, {{"keepdims", std::int64_t{c.flag("keepdim")}}});
}

Value* norm_of(AtenContext& c, Value* x) {
  const Ints axes = reduced_axes(c, x->type.rank());
  const bool keepdims = c.flag("keepdim");
  const double order = c.real(c.has("p") ? "p" : "ord", 2);
  if (std::isinf(order)) return over(c, order > 0 ? "reduce_max" : "reduce_min", x, axes, keepdims);
  if (order == 2) return c.b.sqrt(over(c, "reduce_sum", c.b.mul(x, x), axes, keepdims));
  if (order == 1) return over(c, "reduce_sum", x, axes, keepdims);
  if (order == 0) {
    Value* counts = c.b.unary("not", c.b.call("equal", {x, c.b.scalar(x->type.dtype, 0)}));
    return over(c, "reduce_sum", c.b.cast(counts, x->type.dtype), axes, keepdims);
  }
  Value* sum = over(c, "reduce_sum", c.b.pow(x, c.b.scalar(x->type.dtype, order)), axes, keepdims);
  return c.b.pow(sum, c.b.scalar(x->type.dtype, 1 / order));
}

Outputs vector_norm(AtenContext& c) {
  const DType dtype = c.result().dtype;
  return {c.b.cast(norm_of(c, c.b.unary("abs", c.widened(c.b.cast(c.tensor("self"), dtype)))), dtype)};
}

// Of a matrix: Frobenius's, or the largest or smallest sum of magnitudes of a column (1) or a row (infinity).
Outputs matrix_norm(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value* x = c.widened(c.b.cast(c.tensor("self"), dtype));
  const std::size_t rank = x->type.rank();
  Ints dims = c.integers("dim", {-2, -1});
  for (std::int64_t& d : dims) d = c.axis(d, rank);
  const Arg* order = c.find("ord");
  const bool keepdims = c.flag("keepdim");
  const auto shaped = [&](Value* y) { return Outputs{c.b.cast(c.b.reshape(y, c.result().shape), dtype)}; };
  if (!order || !order->is_number()) {
    if (order && order->name != "fro") c.refuse("a norm 'fro', 1, -1 or infinite", order->name);
    return shaped(c.b.norm_root(
        over(c, "reduce_sum", c.b.mul(x, x), {std::min(dims.at(0), dims.at(1)), std::max(dims[0], dims[1])}, keepdims), 2));
  }
  const double p = c.real("ord");
  if (std::fabs(p) != 1 && !std::isinf(p)) c.refuse("a norm 'fro', 1, -1 or infinite", std::to_string(p));
  const bool columns = std::fabs(p) == 1;
  Value* sums = over(c, "reduce_sum", c.b.unary("abs", x), {columns ? dims.at(0) : dims.at(1)}, true);
  return shaped(over(c, p > 0 ? "reduce_max" : "reduce_min", sums, {columns ? dims[1] : dims[0]}, true));
}

// Of vectors without an order, or along one dimension; of matrices else.
Outputs norm(AtenContext& c) {
  const std::size_t dims = c.has("dim") ? c.integers("dim").size() : c.tensor("self")->type.rank();
  return !c.has("ord") || (c.find("ord")->is_number() && dims == 1) ? vector_norm(c) : matrix_norm(c);
}

// Without those that are no numbers.
Outputs numbers_alone(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value* x = c.widened(c.b.cast(c.tensor("self"), dtype));
  const Ints axes = reduced_axes(c, x->type.rank());
  const bool keepdims = c.flag("keepdim");
  if (!is_float(dtype)) return {over(c, "reduce_sum", x, axes, keepdims)};
  Value* none = c.b.unary("is_nan", x);
  Value* sum = over(c, "reduce_sum", c.b.where(none, c.b.scalar(x->type.dtype, 0), x), axes, keepdims);
  if (c.core() == "mean") {
    Value* counts = over(c, "reduce_sum", c.b.cast(c.b.unary("not", none), x->type.dtype), axes, keepdims);
    sum = c.b.div(sum, counts);
  }
  return {c.b.cast(sum, dtype)};
}

Outputs count_nonzero(AtenContext& c) {
  Value* x = c.b.cast(c.b.cast(c.tensor("self"), DType::boolean), DType::i64);
  return {over(c, "reduce_sum", x, reduced_axes(c, x->type.rank()), false)};
}

Outputs both_extremes(AtenContext& c) {
  Value* x = c.tensor("self");
  const DType dtype = x->type.dtype;
  if (dtype == DType::boolean) x = c.b.cast(x, DType::u8);
  const Ints axes = reduced_axes(c, x->type.rank());
  const auto extreme = [&](const char* op) { return c.b.cast(over(c, op, x, axes, c.flag("keepdim")), dtype); };
  return {extreme("reduce_min"), extreme("reduce_max")};
}

Value* between(AtenContext& c, Value* x, std::int64_t axis, std::int64_t first) {
  return c.b.slice_axis(x, axis, Expr(first), x->type.shape[static_cast<std::size_t>(axis)] - 1);
}

// Areas between neighbours, added up or as running sums.
Outputs trapezoids(AtenContext& c) {
  const DType dtype = c.result().dtype;
  Value* y = c.operand("y", dtype);
  const std::int64_t axis = c.axis(c.integer("dim", -1), y->type.rank());
  Value* pair = c.b.mul(c.b.add(between(c, y, axis, 1), between(c, y, axis, 0)), 0.5);
  if (c.has("x")) {
    Value* x = c.operand("x", dtype);
    const std::int64_t own = x->type.rank() == 1 ? 0 : c.axis(c.integer("dim", -1), x->type.rank());
    Value* step = c.b.sub(between(c, x, own, 1), between(c, x, own, 0));
    if (x->type.rank() == 1) {
      Shape line(y->type.rank() - static_cast<std::size_t>(axis), Expr(1));
      line[0] = step->type.shape[0];
      step = c.b.reshape(step, line);
    }
    pair = c.b.mul(pair, step);
  } else if (c.has("dx")) {
    pair = c.b.mul(pair, c.operand("dx", dtype));
  }
  return {c.core() == "running" ? c.b.cumsum(pair, axis) : over(c, "reduce_sum", pair, {axis}, false)};
}

// Of neighbours, n times.
Outputs differences(AtenContext& c) {
  const DType dtype = c.result().dtype;
  const std::int64_t axis = c.axis(c.integer("dim", -1), c.tensor("self")->type.rank());
  std::vector<Value*> parts;
  for (const char* name : {"prepend", "self", "append"})
    if (c.has(name)) parts.push_back(c.operand(name, dtype));
  Value* x = parts.size() == 1 ? parts[0] : c.b.concat(parts, axis);
  for (std::int64_t n = c.integer("n", 1); n > 0; --n)
    x = c.b.call(dtype == DType::boolean ? "xor" : "sub", {between(c, x, axis, 1), between(c, x, axis, 0)});
  return {x};
}

constexpr OpRow kReductionRows[] = {
    {"aten.sum.default", reduce, "reduce_sum"},
    {"aten.sum.dim_IntList", reduce, "reduce_sum"},
    {"aten.mean.default", reduce, "reduce_mean"},
    {"aten.mean.dim", reduce, "reduce_mean"},
    {"aten.prod.default", reduce, "reduce_prod"},
    {"aten.prod.dim_int", reduce, "reduce_prod"},
    {"aten.amax.default", reduce, "reduce_max"},
    {"aten.amin.default", reduce, "reduce_min"},
    {"aten.max.default", reduce, "reduce_max"},
    {"aten.min.default", reduce, "reduce_min"},
    {"prims.sum.default", reduce, "reduce_sum"},
    {"prims.prod.default", reduce, "reduce_prod"},
    {"prims.amax.default", reduce, "reduce_max"},
    {"prims.amin.default", reduce, "reduce_min"},
    {"aten.any.default", truth, "reduce_max"},
    {"aten.any.dim", truth, "reduce_max"},
    {"aten.any.dims", truth, "reduce_max"},
    {"aten.all.default", truth, "reduce_min"},
    {"aten.all.dim", truth, "reduce_min"},
    {"aten.argmax.default", arg, "argmax"},
    {"aten.argmin.default", arg, "argmin"},
    {"aten.max.dim", extreme_along, "max"},
    {"aten.min.dim", extreme_along, "min"},
    {"aten.var.default", variance, "var"},
    {"aten.var.correction", variance, "var"},
    {"aten.var.dim", variance, "var"},
    {"aten.std.correction", variance, "std"},
    {"aten.std.dim", variance, "std"},
    {"aten.std.default", variance, "std"},
    {"aten.var_mean.default", variance, "var"},
    {"aten.var_mean.dim", variance, "var"},
    {"aten.var_mean.correction", variance, "var"},
    {"aten.std_mean.default", variance, "std"},
    {"aten.std_mean.dim", variance, "std"},
    {"aten.std_mean.correction", variance, "std"},
    {"aten.cumsum.default", cumulative, "sum"},
    {"aten.cumprod.default", cumulative, "prod"},
    {"aten.logsumexp.default", log_sum_exp},
    {"aten.linalg_vector_norm.default", vector_norm},
    {"aten.norm.Scalar", vector_norm},
    {"aten.norm.ScalarOpt_dtype", vector_norm},
    {"aten.norm.ScalarOpt_dim", vector_norm},
    {"aten.norm.ScalarOpt_dim_dtype", vector_norm},
    {"aten.frobenius_norm.dim", vector_norm},
    {"aten.linalg_norm.default", norm},
    {"aten.linalg_norm.ord_str", matrix_norm},
    {"aten.linalg_matrix_norm.default", matrix_norm},
    {"aten.linalg_matrix_norm.str_ord", matrix_norm},
    {"aten.nansum.default", numbers_alone, "sum"},
    {"aten.nanmean.default", numbers_alone, "mean"},
    {"aten.count_nonzero.default", count_nonzero},
    {"aten.count_nonzero.dim_IntList", count_nonzero},
    {"aten.aminmax.default", both_extremes},
    {"aten.trapezoid.dx", trapezoids},
    {"aten.trapezoid.x", trapezoids},
    {"aten.cumulative_trapezoid.dx", trapezoids, "running"},
    {"aten.cumulative_trapezoid.x", trapezoids, "running"},
    {"aten.diff.default", differences},
};

}  // namespace

std::span<const OpRow> reduction_rows() { return kReductionRows; }

}  // namespace oclc::pt2

// Reductions and running sums.
#include <numeric>

#include "frontends/onnx/ops/running.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

struct Over {
  Ints axes;
  bool keepdims = true;
  bool nothing = false;  // no axes were given, and that means none
};

Over all_or(OpContext& c, Ints axes, bool empty_is_none) {
  Over over{std::move(axes), c.flag("keepdims", true), false};
  if (over.axes.empty()) {
    over.nothing = empty_is_none;
    if (!empty_is_none) {
      over.axes.resize(c.rank(0));
      std::iota(over.axes.begin(), over.axes.end(), 0);
    }
  }
  return over;
}

Over axes_attribute(OpContext& c) { return all_or(c, c.integers("axes", Ints{}), false); }

Over axes_input(OpContext& c) {
  const bool none = c.flag("noop_with_empty_axes");
  return all_or(c, c.optional_input(1) ? c.numbers(1, "axes") : Ints{}, none);
}

Value* reduce(OpContext& c, std::string_view op, Value* x, const Over& over) {
  return over.nothing ? x : c.b.reduce(op, x, over.axes, over.keepdims);
}

Value* reduced(OpContext& c, const Over& over) {
  Value* x = c.input(0);
  const std::string_view kind = c.core();
  if (kind == "l1") return reduce(c, "reduce_sum", c.b.unary("abs", x), over);
  if (kind == "l2") return c.b.norm_root(reduce(c, "reduce_sum", c.b.mul(x, x), over), 2);
  if (kind == "log_sum") return c.b.unary("log", reduce(c, "reduce_sum", x, over));
  if (kind == "sum_square") return reduce(c, "reduce_sum", c.b.mul(x, x), over);
  if (kind == "log_sum_exp") {
    if (over.nothing) return x;
    // Shifted by the largest element, unless that is infinite.
    Value* top = c.b.reduce("reduce_max", x, over.axes, true);
    top = c.b.where(c.b.unary("is_inf", top), c.b.scalar(x->type.dtype, 0), top);
    Value* sum = c.b.reduce("reduce_sum", c.b.exp(c.b.sub(x, top)), over.axes, true);
    Value* kept = c.b.add(c.b.unary("log", sum), top);
    return over.keepdims ? kept : c.b.reduce("reduce_sum", kept, over.axes, false);
  }
  return reduce(c, kind, x, over);
}

Outputs by_attribute(OpContext& c) { return {reduced(c, axes_attribute(c))}; }
Outputs by_input(OpContext& c) { return {reduced(c, axes_input(c))}; }

Outputs arg(OpContext& c) {
  const bool keepdims = c.flag("keepdims", true), last = c.flag("select_last_index");
  return {c.b.arg(c.core(), c.input(0), static_cast<std::int64_t>(c.axis_attribute(0)), keepdims, last)};
}

Outputs running_results(OpContext& c) {
  const Ints axis = c.numbers(1, "the axis");
  if (axis.size() != 1) c.fail("one axis", std::to_string(axis.size()));
  return {
      running(c.b, c.input(0), {c.axis(axis[0], c.rank(0)), c.flag("exclusive"), c.flag("reverse"), c.core() == "product"})};
}

constexpr OpRow kReductionRows[] = {
    {"ReduceL1", 1, 1, 1, by_attribute, "l1"},
    {"ReduceL1", 18, 1, 2, by_input, "l1"},
    {"ReduceL2", 1, 1, 1, by_attribute, "l2"},
    {"ReduceL2", 18, 1, 2, by_input, "l2"},
    {"ReduceLogSum", 1, 1, 1, by_attribute, "log_sum"},
    {"ReduceLogSum", 18, 1, 2, by_input, "log_sum"},
    {"ReduceLogSumExp", 1, 1, 1, by_attribute, "log_sum_exp"},
    {"ReduceLogSumExp", 18, 1, 2, by_input, "log_sum_exp"},
    {"ReduceMax", 1, 1, 1, by_attribute, "reduce_max"},
    {"ReduceMax", 18, 1, 2, by_input, "reduce_max"},
    {"ReduceMean", 1, 1, 1, by_attribute, "reduce_mean"},
    {"ReduceMean", 18, 1, 2, by_input, "reduce_mean"},
    {"ReduceMin", 1, 1, 1, by_attribute, "reduce_min"},
    {"ReduceMin", 18, 1, 2, by_input, "reduce_min"},
    {"ReduceProd", 1, 1, 1, by_attribute, "reduce_prod"},
    {"ReduceProd", 18, 1, 2, by_input, "reduce_prod"},
    {"ReduceSum", 1, 1, 1, by_attribute, "reduce_sum"},
    {"ReduceSum", 13, 1, 2, by_input, "reduce_sum"},
    {"ReduceSumSquare", 1, 1, 1, by_attribute, "sum_square"},
    {"ReduceSumSquare", 18, 1, 2, by_input, "sum_square"},
    {"ArgMax", 1, 1, 1, arg, "argmax"},
    {"ArgMin", 1, 1, 1, arg, "argmin"},
    {"CumProd", 26, 2, 2, running_results, "product"},
    {"CumSum", 11, 2, 2, running_results, "sum"},
};

}  // namespace

std::span<const OpRow> reduction_rows() { return kReductionRows; }

}  // namespace oclc::onnx

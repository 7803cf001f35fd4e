// Running extremes and running logarithms of sums, elements by their rank, places in sorted rows, and writes in a mask's order.
#include <functional>

#include "frontends/pt2/axes.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

using Combine = std::function<std::vector<Value*>(const std::vector<Value*>& left, const std::vector<Value*>& right)>;

// y[i] = x[0] . x[1] . .. x[i] for an associative `.` on tuples, by doubling: log2(size) steps.
std::vector<Value*> scanned(AtenContext& c, std::vector<Value*> x, std::int64_t axis, const Combine& combine) {
  const Expr size = x[0]->type.shape[static_cast<std::size_t>(axis)];
  if (!size.is_constant()) c.refuse("a size known when compiling along the axis of a scan", x[0]->type.text());
  for (std::int64_t step = 1; step < size.value(); step *= 2) {
    std::vector<Value*> left, right;
    for (Value* v : x) {
      left.push_back(c.b.slice_axis(v, axis, Expr(0), size - step));
      right.push_back(c.b.slice_axis(v, axis, Expr(step), size - step));
    }
    const std::vector<Value*> both = combine(left, right);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = c.b.concat({c.b.slice_axis(x[i], axis, Expr(0), Expr(step)), both[i]}, axis);
  }
  return x;
}

Value* as_numbers(AtenContext& c, Value* x) { return x->type.dtype == DType::boolean ? c.b.cast(x, DType::u8) : x; }

// The extreme up to each place and where it stands: the last of equal ones, and NaN once there is one.
Outputs running_extreme(AtenContext& c) {
  Value* x = c.tensor("self");
  if (x->type.rank() == 0) return {x, c.b.scalar(DType::i64, 0)};
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  Shape line(x->type.rank(), Expr(1));
  line[static_cast<std::size_t>(axis)] = x->type.shape[static_cast<std::size_t>(axis)];
  Value* places = c.b.expand(c.b.iota(line, axis, DType::i64), x->type.shape);
  std::vector<Value*> y =
      scanned(c, {as_numbers(c, x), places}, axis, [&](const std::vector<Value*>& left, const std::vector<Value*>& right) {
        Value* later = c.b.call(c.core(), {right[0], left[0]});
        if (is_float(x->type.dtype)) {
          later = c.b.call("and", {later, c.b.unary("not", c.b.unary("is_nan", left[0]))});
          later = c.b.call("or", {later, c.b.unary("is_nan", right[0])});
        }
        return std::vector<Value*>{c.b.where(later, right[0], left[0]), c.b.where(later, right[1], left[1])};
      });
  return {c.b.cast(y[0], x->type.dtype), y[1]};
}

// log(e^a + e^b) = max + log(1 + e^-|a - b|); infinite equal ones have no difference.
Outputs running_log_sum(AtenContext& c) {
  Value* x = c.b.cast(c.tensor("self"), c.result().dtype);
  if (x->type.rank() == 0) return {x};
  const std::int64_t axis = c.axis(c.integer("dim"), x->type.rank());
  return scanned(c, {x}, axis, [&](const std::vector<Value*>& left, const std::vector<Value*>& right) {
    Value *a = left[0], *b = right[0];
    Value* apart = c.b.where(c.b.call("equal", {a, b}), c.b.scalar(a->type.dtype, 0), c.b.unary("abs", c.b.sub(a, b)));
    return std::vector<Value*>{c.b.add(c.b.max(a, b), c.b.unary("softplus", c.b.unary("neg", apart)))};
  });
}

// In ascending order along `axis`, NaN last: values and their places.
Outputs sorted(AtenContext& c, Value* x, std::int64_t axis) {
  return onnx_call(c, "TopK", {x, c.b.exprs({x->type.shape[static_cast<std::size_t>(axis)]}, {1})},
                   {{"axis", axis}, {"largest", std::int64_t{0}}}, 2);
}

Outputs sorted_rows(AtenContext& c) {
  Value* x = c.tensor("self");
  return {x->type.rank() == 0 ? x : sorted(c, x, 0)[0]};
}

Value* without(AtenContext& c, Value* x, std::int64_t axis) {
  Shape shape = x->type.shape;
  shape.erase(shape.begin() + axis);
  return c.b.reshape(x, std::move(shape));
}

// Elements [.., rank, ..] of sorted rows, with the ranks along `axis` as a tensor of size 1 there.
Outputs at_rank(AtenContext& c, const Outputs& in_order, Value* rank, std::int64_t axis, DType dtype, bool keepdims) {
  Shape shape = in_order[0]->type.shape;
  shape[static_cast<std::size_t>(axis)] = 1;
  Value* places = c.b.expand(rank, shape);
  Outputs out;
  for (Value* rows : in_order) {
    Value* found = c.b.gather_elements(rows, places, axis);
    out.push_back(keepdims ? found : without(c, found, axis));
  }
  out[0] = c.b.cast(out[0], dtype);
  return out;
}

Outputs by_rank(AtenContext& c) {
  Value* x = c.tensor("self");
  const DType dtype = x->type.dtype;
  if (x->type.rank() == 0) return {x, c.b.scalar(DType::i64, 0)};
  const std::int64_t axis = c.axis(c.integer("dim", -1), x->type.rank());
  Value* rank = c.b.add(c.b.exprs({c.size("k")}, {}), -1);
  return at_rank(c, sorted(c, as_numbers(c, x), axis), rank, axis, dtype, c.flag("keepdim"));
}

// The lower one of two medians. With NaN among the elements it is NaN, or they are left out.
Outputs median(AtenContext& c) {
  Value* x = c.tensor("self");
  const DType dtype = x->type.dtype;
  if (x->type.rank() == 0) return {x, c.b.scalar(DType::i64, 0)};
  const bool all = !c.has("dim");
  if (all) x = c.b.reshape(x, {x->type.elements()});
  const std::int64_t axis = all ? 0 : c.axis(c.integer("dim"), x->type.rank());
  Value* size = c.b.exprs({x->type.shape[static_cast<std::size_t>(axis)]}, {});
  Value* two = c.b.scalar(DType::i64, 2);
  Value* rank = c.b.div(c.b.add(size, -1), two);
  if (is_float(dtype)) {
    Value* count = c.b.reduce("reduce_sum", c.b.cast(c.b.unary("is_nan", x), DType::i64), {axis}, true);
    Value* rest = c.b.sub(size, count);
    if (c.core() == "nan")
      rank = c.b.max(c.b.div(c.b.add(rest, -1), two), c.b.scalar(DType::i64, 0));
    else
      rank = c.b.where(c.b.call("greater", {count, c.b.scalar(DType::i64, 0)}), rest, rank);
  }
  Outputs out = at_rank(c, sorted(c, as_numbers(c, x), axis), rank, axis, dtype, c.flag("keepdim"));
  if (all) out.resize(1);
  return out;
}

// At a part q of the way through the sorted elements, 0 to 1: between the two nearest by what `interpolation` says. With NaN
// among the elements it is NaN, or they are left out.
Outputs quantile(AtenContext& c) {
  Value* x = c.tensor("self");
  const DType dtype = x->type.dtype;
  const bool all = !c.has("dim") || x->type.rank() == 0;
  if (all) x = c.b.reshape(x, {x->type.elements()});
  const auto last = static_cast<std::int64_t>(x->type.rank()) - 1, axis = all ? 0 : c.axis(c.integer("dim"), x->type.rank());
  Ints perm;
  for (std::int64_t i = 0; i <= last; ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  x = reordered(c, x, perm);
  const Expr count = x->type.shape.back();
  Value* parts = c.find("q")->is(Arg::Kind::tensor) ? c.tensor("q") : c.operand("q", dtype);
  parts = c.b.reshape(c.b.cast(parts, dtype), {parts->type.elements()});

  Value* largest = c.b.add(c.b.exprs({count}, {}), -1);  // rank
  Value* missing = c.b.reduce("reduce_sum", c.b.cast(c.b.unary("is_nan", x), DType::i64), {last}, true);
  Value* rank = c.b.mul(parts, c.b.cast(c.core() == "nan" ? c.b.sub(largest, missing) : largest, dtype));
  if (c.core() == "nan")
    rank = c.b.max(rank, c.b.scalar(dtype, 0));
  else
    rank = c.b.where(c.b.call("greater", {missing, c.b.scalar(DType::i64, 0)}), c.b.cast(largest, dtype), rank);
  Shape shape = x->type.shape;
  shape.back() = parts->type.shape[0];
  rank = c.b.expand(rank, shape);

  const std::string between = c.text("interpolation", "linear");
  Value* rows = sorted(c, x, last)[0];
  const auto at = [&](Value* place) { return c.b.gather_elements(rows, c.b.cast(place, DType::i64), last); };
  Value *below = c.b.unary("floor", rank), *above = c.b.unary("ceil", rank), *y = nullptr;
  if (between == "linear" || between == "midpoint") {
    Value *first = at(below), *step = c.b.sub(at(above), first);
    Value* share = between == "linear" ? c.b.sub(rank, below) : c.b.scalar(dtype, 0.5);
    y = c.b.add(first, c.b.mul(share, step));
  } else {
    y = at(between == "lower" ? below : between == "higher" ? above : c.b.unary("round", rank));
  }
  Ints front = {last};  // the quantiles come first
  for (std::int64_t i = 0; i < last; ++i) front.push_back(i);
  return {c.b.reshape(reordered(c, y, front), c.result().shape)};
}

// Which elements are among others.
Outputs is_in(AtenContext& c) {
  const std::string_view one = c.has("element") ? "element" : "elements",
                         others = c.has("test_element") ? "test_element" : "test_elements";
  const DType dtype = c.common_dtype({one, others});
  Value *x = c.operand(one, dtype), *among = c.operand(others, dtype);
  Shape shape = x->type.shape;
  shape.emplace_back(1);
  const auto last = static_cast<std::int64_t>(shape.size()) - 1;
  Value* equal = c.b.call("equal", {c.b.reshape(x, shape), c.b.reshape(among, {among->type.elements()})});
  Value* found = c.b.cast(c.b.reduce("reduce_sum", c.b.cast(equal, DType::i64), {last}, false), DType::boolean);
  return {c.flag("invert") ? c.b.unary("not", found) : found};
}

// How many elements of the sorted rows stand before each value: [.., n] and [.., m] give [.., m].
Value* places_in(AtenContext& c, Value* rows, Value* values, bool right) {
  const DType dtype = promoted(rows->type.dtype, values->type.dtype);
  rows = c.b.cast(rows, dtype);
  values = c.b.cast(values, dtype);
  Shape of_values = values->type.shape, of_rows = rows->type.shape;
  of_values.emplace_back(1);
  if (of_rows.size() > 1) of_rows.insert(of_rows.end() - 1, Expr(1));
  // A value that is NaN stands behind all.
  Value* before = c.b.unary(
      "not", c.b.call(right ? "greater" : "greater_equal", {c.b.reshape(rows, of_rows), c.b.reshape(values, of_values)}));
  const auto last = static_cast<std::int64_t>(of_values.size()) - 1;
  return c.b.cast(c.b.reduce("reduce_sum", c.b.cast(before, DType::i32), {last}, false), c.result().dtype);
}

// The values to look for: a tensor, or a number of the rows' type.
Value* searched(AtenContext& c, const Value& rows) {
  const Arg* value = c.find("self");
  return value && value->is(Arg::Kind::tensor) ? c.tensor("self") : c.operand("self", rows.type.dtype);
}

Outputs search(AtenContext& c) {
  Value* rows = c.tensor("sorted_sequence");
  if (Value* sorter = c.optional_tensor("sorter"))
    rows = c.b.gather_elements(rows, sorter, static_cast<std::int64_t>(rows->type.rank()) - 1);
  return {places_in(c, rows, searched(c, *rows), c.flag("right") || c.text("side") == "right")};
}

Outputs bucket(AtenContext& c) {
  Value* rows = c.tensor("boundaries");
  return {places_in(c, rows, searched(c, *rows), c.flag("right"))};
}

// Of each element the number of true ones of the mask before it, in rows.
Value* order_of(AtenContext& c, Value* mask) {
  Value* flat = c.b.cast(c.b.reshape(mask, {mask->type.elements()}), DType::i64);
  return c.b.cumsum(flat, 0, true);
}

// The elements of the source in order where the mask is true.
Outputs masked_scatter(AtenContext& c) {
  const Shape& shape = c.result().shape;
  Value *x = c.b.expand(c.tensor("self"), shape), *mask = c.b.expand(c.tensor("mask"), shape), *source = c.tensor("source");
  const Expr count = source->type.elements();
  Value* last = c.b.add(c.b.exprs({count}, {}), -1);
  Value* read = c.b.gather(c.b.reshape(source, {count}), c.b.min(order_of(c, mask), last));
  return {c.b.where(mask, c.b.reshape(read, shape), x)};
}

// The gradient of the source: that of the result where the mask is true, in order, and zeros behind.
Outputs masked_scatter_backward(AtenContext& c) {
  Value *g = c.tensor("grad_output"), *mask = c.b.expand(c.tensor("mask"), c.tensor("grad_output")->type.shape);
  Value* kept = c.b.reshape(c.b.where(mask, g, c.b.scalar(g->type.dtype, 0)), {g->type.elements()});
  const Expr count = product(std::span<const Expr>(c.result().shape));
  Value* last = c.b.add(c.b.exprs({count}, {}), -1);
  Value* sums = c.b.call("scatter_add", {c.b.min(order_of(c, mask), last), kept},
                         {{"axis", std::int64_t{0}}, {"size", std::vector<Expr>{count}}});
  return {c.b.reshape(sums, c.result().shape)};
}

// Places of the elements that are not 0, in order: [size, rank]; rows behind them hold a number.
Outputs places_of_nonzero(AtenContext& c) {
  Value* x = c.tensor("self");
  const Shape shape = x->type.shape;
  const Expr size = c.result().shape[0], count = x->type.elements();
  if (shape.empty()) return {c.b.expand(c.b.scalar(DType::i64, 0), c.result().shape)};
  Value* mask = c.b.reshape(c.b.cast(x, DType::boolean), {Expr(1), count});
  Value* rank = c.b.reshape(order_of(c, mask), {Expr(1), count});
  Value* row = c.b.iota({size, Expr(1)}, 0, DType::i64);
  Value* here = c.b.call("and", {mask, c.b.call("equal", {rank, row})});
  Value* flat = c.b.where(here, c.b.iota({Expr(1), count}, 1, DType::i64), c.b.scalar(DType::i64, 0));
  flat = c.b.reduce("reduce_sum", flat, {1}, true);
  Value* found = c.b.reduce("reduce_max", c.b.cast(here, DType::i32), {1}, true);
  std::vector<Value*> columns(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    Value* axis_size = c.b.exprs({shape[i]}, {});
    columns[i] = c.b.call("mod", {flat, axis_size});
    flat = c.b.div(flat, axis_size);
  }
  Value* places = columns.size() == 1 ? columns[0] : c.b.concat(columns, 1);
  return {c.b.where(c.b.cast(found, DType::boolean), places, c.b.scalar(DType::i64, c.real("fill_value", -1)))};
}

constexpr OpRow kOrderRows[] = {
    {"aten.cummax.default", running_extreme, "greater_equal"},
    {"aten.cummin.default", running_extreme, "less_equal"},
    {"aten.logcumsumexp.default", running_log_sum},
    {"aten.kthvalue.default", by_rank},
    {"aten.median.default", median},
    {"aten.median.dim", median},
    {"aten.nanmedian.default", median, "nan"},
    {"aten.nanmedian.dim", median, "nan"},
    {"aten.quantile.default", quantile},
    {"aten.quantile.scalar", quantile},
    {"aten.nanquantile.default", quantile, "nan"},
    {"aten.nanquantile.scalar", quantile, "nan"},
    {"aten.isin.Tensor_Tensor", is_in},
    {"aten.isin.Tensor_Scalar", is_in},
    {"aten.isin.Scalar_Tensor", is_in},
    {"aten.msort.default", sorted_rows},
    {"aten.searchsorted.Tensor", search},
    {"aten.searchsorted.Scalar", search},
    {"aten.bucketize.Tensor", bucket},
    {"aten.bucketize.Scalar", bucket},
    {"aten.masked_scatter.default", masked_scatter},
    {"aten.masked_scatter_backward.default", masked_scatter_backward},
    {"aten.nonzero_static.default", places_of_nonzero},
};

}  // namespace

std::span<const OpRow> order_rows() { return kOrderRows; }

}  // namespace oclc::pt2

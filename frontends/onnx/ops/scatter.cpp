// Writes at positions given by a tensor, and orders. Few elements are a kernel's, which computes each element of the result by
// itself: a scatter looks for the updates that name the element, an order counts the elements that come before. More are the
// host's, one after another. Neither needs atomics, and both give the same bits on every device.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kFewUpdates = 16;
constexpr std::int64_t kShortRow = 64;  // whose elements are compared pair by pair

// Types that the host's operators know.
bool host_orders(DType dtype) { return dtype != DType::string && !is_narrow(dtype); }

Value* number(OpContext& c, const Expr& e) { return c.b.exprs({e}, {}); }

// Numbers 0, 1, .. along `axis` of a tensor of `rank` axes, all others of size 1.
Value* ramp(OpContext& c, std::size_t rank, std::size_t axis, const Expr& size) {
  Shape shape(rank, Expr(1));
  shape[axis] = size;
  return c.b.iota(std::move(shape), static_cast<std::int64_t>(axis), DType::i64);
}

Value* from_the_front(OpContext& c, Value* indices, const Expr& size) {
  indices = c.b.cast(indices, DType::i64);
  return c.b.where(c.b.call("less", {indices, c.b.scalar(DType::i64, 0)}), c.b.add(indices, number(c, size)), indices);
}

std::string reduction_of(OpContext& c) {
  const std::string reduction = c.text("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return reduction;
  }
  c.fail("reduction none, add, mul, max or min", printable(reduction));
}

// Updates so many that the host writes them. Where a network is trained their gradient is asked for, which kernels have.
bool many_updates(OpContext& c, const Expr& count) {
  return count.upper() > kFewUpdates && host_orders(c.input(0)->type.dtype) && !c.training();
}

// data[rows, slice] after updates[u, slice] of its rows row[u], none where that is below 0.
Value* scattered_rows(OpContext& c, const std::string& reduction, Value* data, Value* row, Value* updates) {
  std::int64_t number = 0;
  for (const char* other : {"none", "add", "mul", "max", "min"}) {
    if (reduction == other) break;
    ++number;
  }
  return c.b.call("scatter_rows", {data, row, updates}, {{"reduction", number}});
}

// Row `at` of a tensor of these sizes, or -1 where index `at` is beyond its axis.
Value* checked_row(OpContext& c, Value* row, Value* at, const Expr& size) {
  const auto integer = [&](double value) { return c.b.scalar(DType::i64, value); };
  Value* inside = c.b.call("and", {c.b.call("greater_equal", {at, integer(0)}), c.b.call("less", {at, number(c, size)})});
  return c.b.where(inside, row, integer(-1));
}

// Every element is a row of one.
Value* scattered_elements(OpContext& c, const std::string& reduction, Value* data, Value* indices, Value* updates,
                          std::size_t axis) {
  const Shape& sizes = data->type.shape;
  const std::size_t rank = sizes.size();
  Value* at = from_the_front(c, indices, sizes[axis]);
  Expr stride = 1;
  Value* row = nullptr;
  for (std::size_t i = rank; i-- > 0;) {
    Value* along = i == axis ? at : ramp(c, rank, i, indices->type.shape[i]);
    Value* part = c.b.mul(along, number(c, stride));
    row = row ? c.b.add(row, part) : part;
    stride = stride * sizes[i];
  }
  const Expr count = updates->type.elements();
  row = c.b.reshape(checked_row(c, row, at, sizes[axis]), {count});
  Value* y = scattered_rows(c, reduction, c.b.reshape(data, {data->type.elements(), Expr(1)}), row,
                            c.b.reshape(updates, {count, Expr(1)}));
  return c.b.reshape(y, sizes);
}

// data, with the updates that `match` says reduced over the axis `over` of match, which data and updates have too (of size 1
// in data). `last` gives the updates of the last match.
template <class Last>
Value* combined(OpContext& c, const std::string& reduction, Value* data, Value* updates, Value* match, std::size_t over,
                const Shape& result, Last&& last) {
  const auto axis = static_cast<std::int64_t>(over);
  const Ints axes{axis};
  Value* plain = c.b.reshape(data, result);
  if (reduction == "none") {
    Value* position = ramp(c, match->type.rank(), over, match->type.shape[over]);
    Value* found = c.b.reduce("reduce_max", c.b.where(match, position, c.b.scalar(DType::i64, -1)), axes, false);
    Value* any = c.b.call("greater_equal", {found, c.b.scalar(DType::i64, 0)});
    return last(c.b.max(found, c.b.scalar(DType::i64, 0)), any);
  }
  const DType dtype = data->type.dtype;
  if (reduction == "max" || reduction == "min") {
    const bool largest = reduction == "max";
    Value* best = c.b.reduce(largest ? "reduce_max" : "reduce_min", c.b.where(match, updates, data), axes, false);
    return largest ? c.b.max(plain, best) : c.b.min(plain, best);
  }
  const bool sum = reduction == "add";
  Value* terms = c.b.where(match, updates, c.b.scalar(dtype, sum ? 0 : 1));
  Value* reduced = c.b.reduce(sum ? "reduce_sum" : "reduce_prod", terms, axes, false);
  return sum ? c.b.add(plain, reduced) : c.b.mul(plain, reduced);
}

Outputs scatter_elements(OpContext& c) {
  Value *data = c.input(0), *indices = c.input(1), *updates = c.input(2);
  const std::string reduction = reduction_of(c);
  const std::size_t rank = data->type.rank(), axis = c.axis_attribute(0);
  const Shape result = data->type.shape;
  updates = c.b.fit(updates, indices->type.shape);
  if (indices->type.rank() != rank || !(indices->type.shape == updates->type.shape))
    c.fail(fmt::format("indices and updates of one shape and rank {}", rank),
           fmt::format("{} and {}", indices->type.text(), updates->type.text()));
  check_positions(c, indices, {&result[axis], 1});
  if (updates->type.elements() == Expr(0)) return {data};
  if (many_updates(c, indices->type.shape[axis])) return {scattered_elements(c, reduction, data, indices, updates, axis)};
  indices = from_the_front(c, indices, result[axis]);
  // Along the other axes indices may be shorter than the data: what is missing names no element.
  std::vector<Expr> before(rank, Expr(0)), after = before;
  bool shorter = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (i == axis) continue;
    after[i] = result[i] - indices->type.shape[i];
    shorter = shorter || !(after[i] == Expr(0));
    if (known_less(after[i], Expr(0))) c.fail("indices no larger than the data", indices->type.text());
  }
  if (shorter) {
    indices = c.b.pad(indices, before, after, -1);
    updates = c.b.pad(updates, before, after);
  }
  // [.., j, p, ..]: is element p of the data named by index j?
  const auto apart = [&](Value* v, bool first) {
    Shape shape = v->type.shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + (first ? 0 : 1), Expr(1));
    return c.b.reshape(v, std::move(shape));
  };
  Value* match = c.b.call("equal", {apart(indices, false), ramp(c, rank + 1, axis + 1, result[axis])});
  Value* y =
      combined(c, reduction, apart(data, true), apart(updates, false), match, axis, result, [&](Value* found, Value* any) {
        return c.b.where(any, c.b.gather_elements(updates, found, static_cast<std::int64_t>(axis)), data);
      });
  return {y};
}

Outputs scatter_nd(OpContext& c) {
  Value *data = c.input(0), *indices = c.input(1), *updates = c.input(2);
  const std::string reduction = reduction_of(c);
  const Shape shape = data->type.shape;
  if (indices->type.rank() < 1) c.fail("indices of rank 1 or more", indices->type.text());
  const Expr& depth_expr = indices->type.shape.back();
  if (!depth_expr.is_constant() || depth_expr.value() < 1 || depth_expr.value() > static_cast<std::int64_t>(shape.size()))
    c.fail(fmt::format("indices with a last dimension from 1 to {}", shape.size()), indices->type.text());
  const auto depth = static_cast<std::size_t>(depth_expr.value());
  Shape wanted(indices->type.shape.begin(), indices->type.shape.end() - 1);
  const Expr count = product(wanted);
  wanted.insert(wanted.end(), shape.begin() + static_cast<std::ptrdiff_t>(depth), shape.end());
  updates = c.b.fit(updates, wanted);
  if (!(updates->type.shape == wanted)) c.fail("updates of " + text_of(wanted), updates->type.text());
  const std::span<const Expr> all(shape);
  check_positions(c, indices, all.first(depth));
  if (updates->type.elements() == Expr(0) || data->type.elements() == Expr(0)) return {data};
  const Expr rows = product(all.first(depth)), slice = product(all.subspan(depth));
  Value* tuples = c.b.reshape(indices, {count, Expr(depth_expr)});
  Value* row = nullptr;
  for (std::size_t k = 0; k < depth; ++k) {
    Value* part = c.b.reshape(c.b.slice_axis(tuples, 1, Expr(static_cast<std::int64_t>(k)), Expr(1)), {count});
    part = from_the_front(c, part, shape[k]);
    row = row ? c.b.add(c.b.mul(row, number(c, shape[k])), part) : part;
  }
  Value* flat_updates = c.b.reshape(updates, {count, slice});
  Value* flat_data = c.b.reshape(data, {rows, slice});
  if (many_updates(c, count)) return {c.b.reshape(scattered_rows(c, reduction, flat_data, row, flat_updates), shape)};
  // [u, m, s]: does update u name row m?
  Value* match = c.b.call("equal", {c.b.reshape(row, {count, Expr(1), Expr(1)}), ramp(c, 3, 1, rows)});
  Value* y = combined(c, reduction, c.b.reshape(data, {Expr(1), rows, slice}), c.b.reshape(updates, {count, Expr(1), slice}),
                      match, 0, {rows, slice}, [&](Value* found, Value* any) {
                        Value* taken = c.b.gather(flat_updates, c.b.reshape(found, {rows}), 0);
                        return c.b.where(any, taken, flat_data);
                      });
  return {c.b.reshape(y, shape)};
}

// Long rows are put in order by the host.
Outputs top_of_long_rows(OpContext& c, const Expr& k, std::size_t axis, bool largest) {
  Value* x = c.input(0);
  Ints last(x->type.rank());
  std::iota(last.begin(), last.end(), 0);
  std::swap(last[axis], last.back());
  Value* places = c.b.call("top_places", {c.b.transpose(x, last)},
                           {{"largest", std::int64_t{largest ? 1 : 0}}, {"k", std::vector<Expr>{k}}});
  Value* indices = c.b.transpose(places, last);
  return {c.b.gather_elements(x, indices, static_cast<std::int64_t>(axis)), indices};
}

// The k first elements of each row in order of size; equal ones in order of place.
Outputs top(OpContext& c, const Expr& k) {
  Value* x = c.input(0);
  const std::size_t axis = c.axis_attribute(-1), rank = x->type.rank();
  const bool largest = c.flag("largest", true);
  c.ignore({"sorted"});  // they always are
  const Expr& size = x->type.shape[axis];
  if (known_less(k, Expr(0)) || known_less(size, k)) c.fail(fmt::format("k from 0 to {}", size.text()), k.text());
  if (size.upper() > kShortRow && host_orders(x->type.dtype)) return top_of_long_rows(c, k, axis, largest);
  // [.., i, j, ..]: does element j come before element i?
  const auto apart = [&](std::size_t at) {
    Shape shape = x->type.shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), Expr(1));
    return c.b.reshape(x, std::move(shape));
  };
  Value *one = apart(axis + 1), *other = apart(axis);
  Value *i = ramp(c, rank + 1, axis, size), *j = ramp(c, rank + 1, axis + 1, size);
  Value* better = c.b.call(largest ? "greater" : "less", {other, one});
  Value* same = c.b.call("equal", {other, one});
  if (is_float(x->type.dtype)) {
    // NaN counts as the largest number.
    Value *no_number = c.b.unary("is_nan", one), *no_other = c.b.unary("is_nan", other);
    Value* apart_from = largest ? no_number : no_other;
    better = c.b.call("or", {better, c.b.call("and", {largest ? no_other : no_number, c.b.unary("not", apart_from)})});
    same = c.b.call("or", {same, c.b.call("and", {no_number, no_other})});
  }
  Value* earlier = c.b.call("and", {same, c.b.call("less", {j, i})});
  Value* before = c.b.cast(c.b.call("or", {better, earlier}), DType::i64);
  Value* place = c.b.reduce("reduce_sum", before, {static_cast<std::int64_t>(axis) + 1}, false);
  // [.., p, i, ..]: does element i come at place p?
  Shape row = x->type.shape;
  row.insert(row.begin() + static_cast<std::ptrdiff_t>(axis), Expr(1));
  Value* here = c.b.call("equal", {c.b.reshape(place, row), ramp(c, rank + 1, axis, k)});
  Value* number_of = c.b.where(here, ramp(c, rank + 1, axis + 1, size), c.b.scalar(DType::i64, 0));
  Value* indices = c.b.reduce("reduce_sum", number_of, {static_cast<std::int64_t>(axis) + 1}, false);
  return {c.b.gather_elements(x, indices, static_cast<std::int64_t>(axis)), indices};
}

Outputs top_attribute(OpContext& c) { return top(c, Expr(c.integer("k"))); }

Outputs top_input(OpContext& c) {
  std::vector<Expr> k;
  const auto known = c.parts(1, "k");
  for (const auto& one : known)
    if (one) k.push_back(*one);
  if (known.size() == 1 && !known[0]) {  // at most all elements of the axis
    const Expr& most = c.shape(0)[c.axis(c.integer("axis", -1), c.rank(0))];
    k = c.b.read_dims(c.b.reshape(c.b.cast(c.input(1), DType::i64), {Expr(1)}), "k", {most});
  }
  if (k.size() != 1) c.fail("one number as k", std::to_string(k.size()));
  return top(c, k[0]);
}

Outputs reverse_sequence(OpContext& c) {
  Value* x = c.input(0);
  const std::size_t batch = c.axis(c.integer("batch_axis", 1), x->type.rank()),
                    time = c.axis(c.integer("time_axis", 0), x->type.rank());
  if (batch == time || batch > 1 || time > 1)
    c.fail("axes 0 and 1 as batch_axis and time_axis", fmt::format("{} and {}", batch, time));
  const Shape& shape = x->type.shape;
  if (c.rank(1) != 1 || !(c.shape(1)[0] == shape[batch]))
    c.fail(fmt::format("{} lengths", shape[batch].text()), c.input(1)->type.text());
  Shape column(x->type.rank(), Expr(1));
  column[batch] = shape[batch];
  Value* length = c.b.reshape(c.b.cast(c.input(1), DType::i64), std::move(column));
  Value* at = ramp(c, x->type.rank(), time, shape[time]);
  Value* mirrored = c.b.sub(c.b.sub(length, c.b.scalar(DType::i64, 1)), at);
  Value* from = c.b.where(c.b.call("less", {at, length}), mirrored, at);
  return {c.b.gather_elements(x, c.b.expand(from, shape), static_cast<std::int64_t>(time))};
}

constexpr OpRow kScatterRows[] = {
    {"ReverseSequence", 10, 2, 2, reverse_sequence},
    {"Scatter", 9, 3, 3, scatter_elements},
    {"ScatterElements", 11, 3, 3, scatter_elements},
    {"ScatterND", 11, 3, 3, scatter_nd},
    {"TopK", 1, 1, 1, top_attribute},
    {"TopK", 10, 2, 2, top_input},
};

}  // namespace

std::span<const OpRow> scatter_rows() { return kScatterRows; }

}  // namespace oclc::onnx

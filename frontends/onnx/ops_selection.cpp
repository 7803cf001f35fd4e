// Operators whose results are as large as their inputs' values say.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kBlock = 256;

// Running sums of a vector. A running sum costs the square of its length, so a long vector's are those within blocks, and those
// of the blocks.
Value* running_sums(OpContext& c, Value* x) {
  const Expr n = x->type.elements();
  if (n.upper() <= 4 * kBlock) return c.b.cumsum(x, 0);
  const Expr blocks = ceil_div(n, Expr(kBlock));
  Value* rows = c.b.reshape(c.b.pad(x, {Expr(0)}, {blocks * Expr(kBlock) - n}), {blocks, Expr(kBlock)});
  Value* within = c.b.cumsum(rows, 1);
  Value* before = c.b.cumsum(c.b.slice_axis(within, 1, Expr(kBlock - 1), Expr(1)), 0, true);
  Value* sums = c.b.reshape(c.b.add(within, before), {blocks * Expr(kBlock)});
  return c.b.slice_axis(sums, 0, Expr(0), n);
}

}  // namespace

// Running sums number the elements; each position is then found by halving, which reads log2(n) of them and writes nothing.
Value* positions_of(OpContext& c, Value* flags) {
  const Expr n = flags->type.elements();
  if (n == Expr(0)) return c.b.constant(HostTensor(DType::i64, {0}));
  Value* numbers = running_sums(c, c.b.cast(flags, DType::i64));
  Value* total = known_less(Expr(0), n) ? c.b.slice_axis(numbers, 0, n - 1, Expr(1))
                                        : c.b.reduce("reduce_sum", c.b.cast(flags, DType::i64), {0}, true);
  const Expr found = c.b.read_dims(total, "found", {n}).at(0);
  Value* wanted = c.b.iota({found}, 0, DType::i64);
  Value* length = c.b.exprs({n}, {});
  // The number of elements whose running sum is at most `wanted`.
  Value* before = c.b.expand(c.b.scalar(DType::i64, 0), {found});
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  const auto most = std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max<std::int64_t>(n.upper(), 1)), kMost);
  for (std::uint64_t step = std::bit_floor(most); step > 0; step /= 2) {
    Value* next = c.b.add(before, c.b.scalar(DType::i64, static_cast<double>(step)));
    Value* sum = c.b.gather(numbers, c.b.sub(c.b.min(next, length), c.b.scalar(DType::i64, 1)));
    Value* fits = c.b.call("and", {c.b.call("less_equal", {next, length}), c.b.call("less_equal", {sum, wanted})});
    before = c.b.where(fits, next, before);
  }
  return before;
}

namespace {

Outputs non_zero(OpContext& c) {
  Value* x = c.input(0);
  const Shape& shape = x->type.shape;
  if (shape.empty()) c.unsupported("an input of rank 1 or more", x->type.text());
  Value* flags = x->type.dtype == DType::boolean ? x : c.b.cast(x, DType::boolean);
  Value* at = positions_of(c, c.b.reshape(flags, {product(shape)}));
  const Expr found = at->type.elements();
  std::vector<Value*> rows;
  Expr stride = product(shape);
  for (const Expr& size : shape) {
    stride = floor_div(stride, size);
    Value* row = c.b.div(at, c.b.exprs({stride}, {}));
    if (&size != &shape.front()) row = c.b.call("mod", {row, c.b.exprs({size}, {})});
    rows.push_back(c.b.reshape(row, {Expr(1), found}));
  }
  return {rows.size() == 1 ? rows[0] : c.b.concat(rows, 0)};
}

Outputs compress(OpContext& c) {
  Value* x = c.input(0);
  Value* condition = c.input(1);
  if (condition->type.dtype != DType::boolean || condition->type.rank() != 1)
    c.fail("a vector of bool as condition", condition->type.text());
  const bool flat = !c.has("axis");
  const std::size_t axis = flat ? 0 : c.axis_attribute();
  if (flat) x = c.b.reshape(x, {x->type.elements()});
  if (known_less(x->type.shape[axis], condition->type.shape[0]))
    c.fail("a condition of at most " + x->type.shape[axis].text() + " elements", condition->type.text());
  return {c.b.gather(x, positions_of(c, condition), static_cast<std::int64_t>(axis))};
}

// Whether number j comes before number i, for [1, n, 1] and [n, 1, 1] or both [n, n, 1], as [n, n]. NaN comes behind all
// numbers, and of two the one that stands first.
Value* number_order(OpContext& c, Value* other, Value* mine, const Expr& n) {
  Value* less = c.b.reshape(c.b.call("less", {other, mine}), {n, n});
  if (!is_float(mine->type.dtype)) return less;
  const auto flat = [&](Value* x) { return c.b.reshape(c.b.expand(c.b.unary("is_nan", x), {n, n, Expr(1)}), {n, n}); };
  Value *no_number = flat(mine), *no_other = flat(other);
  Value* earlier = c.b.call("less", {c.b.iota({Expr(1), n}, 1, DType::i64), c.b.iota({n, Expr(1)}, 0, DType::i64)});
  Value* behind = c.b.call("and", {no_number, c.b.call("or", {c.b.unary("not", no_other), earlier})});
  return c.b.call("or", {less, behind});
}

// Of n rows [n, m]: whether row j comes before row i, as [n, n].
Value* row_order(OpContext& c, Value* rows) {
  const Expr n = rows->type.shape[0], m = rows->type.shape[1];
  Value* mine = c.b.reshape(rows, {n, Expr(1), m});
  Value* other = c.b.reshape(rows, {Expr(1), n, m});
  if (m == Expr(1)) return number_order(c, other, mine, n);
  Value* differs = c.b.cast(c.b.unary("not", c.b.call("equal", {mine, other})), DType::i32);
  Value* first = c.b.arg("argmax", differs, 2, true);  // the first column where they differ
  const auto there = [&](Value* x) { return c.b.gather_elements(c.b.expand(x, {n, n, m}), first, 2); };
  return number_order(c, there(other), there(mine), n);
}

// Rows are compared pair by pair: a row's first equal one stands for it, and the number of such rows before it is its place.
Outputs unique_rows(OpContext& c, bool sorted) {
  Value* x = c.input(0);
  const bool flat = !c.has("axis");
  const std::size_t axis = flat ? 0 : c.axis_attribute();
  if (flat) x = c.b.reshape(x, {x->type.elements()});
  Ints front(x->type.rank());
  std::iota(front.begin(), front.end(), 0);
  std::rotate(front.begin(), front.begin() + static_cast<std::ptrdiff_t>(axis),
              front.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  const Expr n = x->type.shape[axis], m = floor_div(x->type.elements(), n == Expr(0) ? Expr(1) : n);
  if (n == Expr(0) || m == Expr(0)) c.unsupported("elements", x->type.text());
  Value* rows = c.b.reshape(c.b.transpose(x, front), {n, m});
  Value* equal = c.b.call("equal", {c.b.reshape(rows, {n, Expr(1), m}), c.b.reshape(rows, {Expr(1), n, m})});
  Value* same = c.b.reduce("reduce_min", c.b.cast(equal, DType::i32), {2}, false);
  if (is_float(x->type.dtype)) {
    // A row with a NaN equals none, but stands for itself.
    Value* itself = c.b.call("equal", {c.b.iota({n, Expr(1)}, 0, DType::i64), c.b.iota({Expr(1), n}, 1, DType::i64)});
    same = c.b.max(same, c.b.cast(itself, DType::i32));
  }
  Value* first = c.b.arg("argmax", same, 1, false);
  Value* stands = c.b.call("equal", {first, c.b.iota({n}, 0, DType::i64)});
  Value* counted = c.b.cast(stands, DType::i64);
  Value* place = nullptr;
  if (sorted) {
    Value* before = c.b.call("and", {row_order(c, rows), c.b.reshape(stands, {Expr(1), n})});
    place = c.b.reduce("reduce_sum", c.b.cast(before, DType::i64), {1}, false);
  } else {
    place = c.b.gather(c.b.sub(running_sums(c, counted), c.b.scalar(DType::i64, 1)), first);
  }
  const Expr found = c.b.read_dims(c.b.reduce("reduce_sum", counted, {0}, true), "unique", {n}).at(0);
  Value* wanted = c.b.iota({found, Expr(1)}, 0, DType::i64);
  Value* is_there = c.b.call("equal", {c.b.reshape(place, {Expr(1), n}), wanted});
  Value* chosen = c.b.call("and", {is_there, c.b.reshape(stands, {Expr(1), n})});
  Value* at = c.b.arg("argmax", c.b.cast(chosen, DType::i32), 1, false);
  Value* counts = c.b.reduce("reduce_sum", c.b.cast(is_there, DType::i64), {1}, false);
  return {c.b.gather(x, at, static_cast<std::int64_t>(axis)), at, place, counts};
}

Outputs unique(OpContext& c) { return unique_rows(c, c.flag("sorted", true)); }

// In the order in which they come: the different numbers, the place of each element's among them, and how often each comes.
Outputs unique_in_order(OpContext& c) {
  const Outputs all = unique_rows(c, false);
  return {all[0], all[2], all[3]};
}

constexpr OpRow kSelectionRows[] = {
    {"Compress", 9, 2, 2, compress},
    {"NonZero", 9, 1, 1, non_zero},
    {"Unique", 11, 1, 1, unique},
    {"com.microsoft.Unique", 1, 1, 1, unique_in_order},
};

}  // namespace

std::span<const OpRow> selection_rows() { return kSelectionRows; }

}  // namespace oclc::onnx

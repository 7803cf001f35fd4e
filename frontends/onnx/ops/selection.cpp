// Operators whose results are as large as their inputs' values say.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/ir/op_def.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// More flags than these are read by the host, which knows their number then.
constexpr std::int64_t kFewFlags = 1024;

// Whether `flags` are one true value, whatever their number.
bool all_true(const Value* flags) {
  while (flags->producer && !constant_of(flags)) {
    const std::string_view op = flags->producer->op->name;
    if (op != "expand" && op != "reshape" && op != "cast") return false;
    flags = flags->producer->inputs[0];
  }
  const HostTensor* known = constant_of(flags);
  if (!known || known->dtype() == DType::string) return false;
  for (std::int64_t i = 0; i < known->elements(); ++i)
    if (known->at(i) == 0) return false;
  return true;
}

}  // namespace

// Running sums number a few elements; each position is then found by halving, which reads log2(n) of them.
Value* positions_of(OpContext& c, Value* flags) {
  const Expr n = flags->type.elements();
  if (n == Expr(0)) return c.b.constant(HostTensor(DType::i64, {0}));
  if (all_true(flags)) return c.b.iota({n}, 0, DType::i64);
  if (n.upper() > kFewFlags) {
    const Node* node = c.b.node("positions", {flags});
    return c.b.slice_axis(node->output(0), 0, Expr(0), c.b.read_dims(node->output(1), "found", {n}).at(0));
  }
  Value* numbers = c.b.cumsum(c.b.cast(flags, DType::i64), 0);
  Value* total = known_less(Expr(0), n) ? c.b.slice_axis(numbers, 0, n - 1, Expr(1))
                                        : c.b.reduce("reduce_sum", c.b.cast(flags, DType::i64), {0}, true);
  const Expr found = c.b.read_dims(total, "found", {n}).at(0);
  Value* wanted = c.b.iota({found}, 0, DType::i64);
  Value* length = c.b.exprs({n}, {});
  // The number of elements whose running sum is at most `wanted`.
  Value* before = c.b.expand(c.b.scalar(DType::i64, 0), {found});
  for (std::uint64_t step = std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n.upper(), 1))); step > 0;
       step /= 2) {
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

// The host puts the rows in order, and so knows the number of different ones.
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
  const Node* node = c.b.node("unique_rows", {rows}, {{"sorted", std::int64_t{sorted ? 1 : 0}}});
  const Expr found = c.b.read_dims(node->output(3), "unique", {n}).at(0);
  const auto of_each = [&](std::size_t i) { return c.b.slice_axis(node->output(i), 0, Expr(0), found); };
  Value* first = of_each(0);
  return {c.b.gather(x, first, static_cast<std::int64_t>(axis)), first, node->output(1), of_each(2)};
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

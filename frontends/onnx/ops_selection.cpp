// Operators whose results are as large as their inputs' values say.
#include <fmt/format.h>

#include <bit>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// Where the elements of the vector `flags` are true, in order: a vector whose length is known when the plan runs. Running sums
// number the elements; each position is then found by halving, which reads log2(n) of them and writes nothing.
Value* positions_of(OpContext& c, Value* flags) {
  const Expr n = flags->type.elements();
  if (n == Expr(0)) return c.b.constant(HostTensor(DType::i64, {0}));
  Value* numbers = c.b.cumsum(c.b.cast(flags, DType::i64), 0);
  const Expr found = c.b.read_dims(c.b.slice_axis(numbers, 0, n - 1, Expr(1)), "found", {n}).at(0);
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

constexpr OpRow kRows[] = {
    {"Compress", 9, 2, 2, compress},
    {"NonZero", 9, 1, 1, non_zero},
};

}  // namespace

std::span<const OpRow> selection_rows() { return kRows; }

}  // namespace oclc::onnx

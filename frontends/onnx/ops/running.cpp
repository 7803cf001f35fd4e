#include "frontends/onnx/ops/running.h"

#include "compiler/ops/shape_rules.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kBlockOfRun = 32;
constexpr std::int64_t kLongestRun = 4 * kBlockOfRun;  // computed at once
// 2^30 elements, the largest buffer, are cut into runs of a thousand.
constexpr int kDeepestRun = 4;

Value* reduced(Builder& b, Value* x, std::size_t axis, bool product, bool keep = false) {
  return b.reduce(product ? "reduce_prod" : "reduce_sum", x, {static_cast<std::int64_t>(axis)}, keep);
}

// Each result by itself.
Value* running_at_once(Builder& b, Value* x, const Running& of) {
  const auto axis = static_cast<std::int64_t>(of.axis);
  if (!of.product) return b.cumsum(x, axis, of.exclusive, of.reverse);
  // [.., i, j, ..]: factor j of result i.
  Shape factors = x->type.shape;
  factors.insert(factors.begin() + axis, Expr(1));
  const auto along = [&](std::size_t at) {
    Shape shape(factors.size(), Expr(1));
    shape[at] = x->type.shape[of.axis];
    return b.iota(std::move(shape), static_cast<std::int64_t>(at), DType::i64);
  };
  Value *first = along(of.axis + (of.reverse ? 0 : 1)), *second = along(of.axis + (of.reverse ? 1 : 0));
  Value* counts = b.call(of.exclusive ? "less" : "less_equal", {first, second});
  Value* terms = b.where(counts, b.reshape(x, std::move(factors)), b.scalar(x->type.dtype, 1));
  return reduced(b, terms, of.axis + 1, true);
}

Value* running_by_blocks(Builder& b, Value* x, const Running& of, int depth) {
  const Shape shape = x->type.shape;
  const Expr n = shape[of.axis];
  if (n.upper() <= kLongestRun || depth == kDeepestRun) return running_at_once(b, x, of);
  const auto at = static_cast<std::ptrdiff_t>(of.axis);
  const Expr blocks = ceil_div(n, Expr(kBlockOfRun));
  std::vector<Expr> before(shape.size(), Expr(0)), after = before;
  after[of.axis] = blocks * Expr(kBlockOfRun) - n;
  Shape cut = shape;
  cut[of.axis] = Expr(kBlockOfRun);
  cut.insert(cut.begin() + at, blocks);
  Value* parts = b.reshape(b.pad(x, std::move(before), std::move(after), of.product ? 1 : 0), cut);
  const Running within{of.axis + 1, of.exclusive, of.reverse, of.product};
  Value* inside = running_at_once(b, parts, within);
  Value* totals = reduced(b, parts, of.axis + 1, of.product);
  Value* earlier = running_by_blocks(b, totals, {of.axis, true, of.reverse, of.product}, depth + 1);
  Shape column = cut, whole = shape;
  column[of.axis + 1] = Expr(1);
  earlier = b.reshape(earlier, std::move(column));
  whole[of.axis] = blocks * Expr(kBlockOfRun);
  Value* all = b.reshape(of.product ? b.mul(inside, earlier) : b.add(inside, earlier), std::move(whole));
  return b.slice_axis(all, static_cast<std::int64_t>(of.axis), Expr(0), n);
}

}  // namespace

Value* running(Builder& b, Value* x, const Running& of) { return running_by_blocks(b, x, of, 0); }

}  // namespace oclc::onnx

#include "compiler/ops/shape_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/error.h"

namespace oclc {
namespace {

// A position in Python's sense, clamped to [lo, hi].
Expr clamp_position(const Expr& position, const Expr& dim, const Expr& lo, const Expr& hi) {
  Expr at = position;
  if (known_less(position, Expr(0))) {
    at = position + dim;
  } else if (!known_nonnegative(position)) {
    reject("a slice position of known sign", position.text());
  }
  if (!known_less_equal(lo, at)) at = max(at, lo);
  if (!known_less_equal(at, hi)) at = min(at, hi);
  return at;
}

}  // namespace

void reject(std::string wanted, std::string found) {
  throw CompileError({.wanted = std::move(wanted), .found = std::move(found)});
}

std::optional<Expr> broadcast_dim(const Expr& a, const Expr& b) {
  if (a == b || b == Expr(1)) return a;
  if (a == Expr(1)) return b;
  return std::nullopt;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result(rank, Expr(1));
  for (std::size_t i = 0; i < rank; ++i) {
    const Expr x = i < rank - a.size() ? Expr(1) : a[i - (rank - a.size())],
               y = i < rank - b.size() ? Expr(1) : b[i - (rank - b.size())];
    const auto dim = broadcast_dim(x, y);
    if (!dim)
      reject("shapes that broadcast", fmt::format("{} and {} ({} against {})", text_of(a), text_of(b), x.text(), y.text()));
    result[i] = *dim;
  }
  return result;
}

std::int64_t normalise_axis(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) {
    reject(r == 0 ? std::string("an operand with at least one axis") : fmt::format("an axis from {} to {}", -r, r - 1),
           fmt::format("axis {}", axis));
  }
  return axis < 0 ? axis + r : axis;
}

std::vector<std::int64_t> normalise_axes(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<std::int64_t> result;
  for (const std::int64_t axis : axes) result.push_back(normalise_axis(axis, rank));
  std::sort(result.begin(), result.end());
  if (const auto twice = std::adjacent_find(result.begin(), result.end()); twice != result.end()) {
    reject("different axes", fmt::format("axis {} twice", *twice));
  }
  return result;
}

Expr window_positions(const Expr& size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t before,
                      std::int64_t after, bool ceil_mode, bool cut) {
  const std::int64_t extent = dilation * (kernel - 1) + 1,
                     least = cut ? std::max<std::int64_t>(extent - stride + 1, 1) : extent;
  const Expr span = size + Expr(before + after - extent);
  if (known_less(span, Expr(least - extent))) {
    reject(fmt::format("at least {} elements for a window of {} with dilation {}", least, kernel, dilation),
           fmt::format("{} with padding {} and {}", size.text(), before, after));
  }
  if (!ceil_mode) {
    const Expr whole = floor_div(span, Expr(stride)) + 1;
    return cut && stride > 1 && !known_nonnegative(span) ? max(whole, Expr(1)) : whole;
  }
  return min(ceil_div(span, Expr(stride)) + 1, ceil_div(size + Expr(before), Expr(stride)));
}

SliceRange slice_range(const Expr& dim, const Expr& start, const Expr& stop, std::int64_t step) {
  if (step == 0) reject("a slice step other than 0", "0");
  if (step > 0) {
    const Expr first = clamp_position(start, dim, Expr(0), dim);
    const Expr last = stop == Expr(kSliceEnd) ? dim : clamp_position(stop, dim, Expr(0), dim);
    const Expr size = ceil_div(last - first, Expr(step));
    return {first, known_nonnegative(size) ? size : max(size, Expr(0))};
  }
  // Downwards: positions are clamped to [-1, dim - 1], where -1 stands before the first element.
  const Expr first = clamp_position(start, dim, Expr(-1), dim - 1);
  const bool to_front = stop.is_constant() && stop.value() <= -kSliceEnd;
  const Expr last = to_front ? Expr(-1) : clamp_position(stop, dim, Expr(-1), dim - 1);
  const Expr size = ceil_div(first - last, Expr(-step));
  return {first, known_nonnegative(size) ? size : max(size, Expr(0))};
}

const TensorType& type_of_input(const Node& node, std::size_t index) {
  if (!has_input(node, index)) reject(fmt::format("input {}", index), "none");
  return node.inputs[index]->type;
}

}  // namespace oclc

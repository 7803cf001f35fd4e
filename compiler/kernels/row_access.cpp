#include "compiler/kernels/row_access.h"

#include <algorithm>

#include "compiler/ir/division.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/memory_access.h"

namespace oclc {
namespace {

// An index within the first image, if those of the next are `size` elements further on.
std::optional<Expr> within_image(const Expr& index, const Kernel& k, std::int64_t images, std::int64_t size) {
  if (images == 1) return index;
  const auto step = index.coefficient(k.axes[0].name);
  if (!step || *step != Expr(size)) return std::nullopt;
  return index.substitute({{k.axes[0].name, Expr(0)}});
}

}  // namespace

std::int64_t leading_images(const Kernel& k) {
  return k.axes.size() > 1 && k.axes[0].extent.is_constant() ? k.axes[0].extent.value() : 1;
}

const Axis* row_axis(const Kernel& k, std::int64_t images) {
  if (images > 1 && leading_images(k) != images) return nullptr;
  const auto at =
      std::find_if(k.axes.begin() + (images > 1 ? 1 : 0), k.axes.end(), [](const Axis& a) { return a.extent != Expr(1); });
  if (at == k.axes.end() || at + 1 == k.axes.end() || !at->extent.is_constant()) return nullptr;
  return &*at;
}

std::optional<std::int64_t> slice_of(const Store& s, const Kernel& k, std::int64_t images) {
  const Axis& row = *row_axis(k, images);
  const auto step = s.index.coefficient(row.name);
  if (!step || !step->is_constant() || step->value() <= 0) return std::nullopt;
  const auto index = within_image(s.index, k, images, step->value() * row.extent.value());
  if (!index) return std::nullopt;
  const Expr rest = index->substitute({{row.name, Expr(0)}});
  return lies_within(rest, {}, step->value()) ? std::optional(step->value()) : std::nullopt;
}

std::optional<RowReads> reads_of(const ScalarNode& load, const Kernel& k, std::int64_t images, std::int64_t slice,
                                 std::int64_t rows) {
  const Axis& row = *row_axis(k, images);
  const auto index = within_image(load.index, k, images, slice * rows);
  const auto step = load.index.coefficient(row.name);
  if (!index || !step || !step->is_constant() || step->value() < 0 || step->value() % slice != 0) return std::nullopt;
  const Expr rest = index->substitute({{row.name, Expr(0)}});
  const std::int64_t low = lower_bound(rest, load.guard), high = lower_bound(-rest, load.guard);
  if (low == -kUnbounded || high == -kUnbounded) return std::nullopt;
  return RowReads{step->value() / slice, divide_down(low, slice), divide_down(-high, slice)};
}

}  // namespace oclc

// Reads at positions given by a tensor.
#include <fmt/format.h>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Outputs gather(OpContext& c) {
  const std::size_t axis = c.axis_attribute(0);
  check_positions(c, c.input(1), {&c.shape(0)[axis], 1});
  return {c.b.gather(c.input(0), c.input(1), static_cast<std::int64_t>(axis))};
}

Outputs gather_elements(OpContext& c) {
  const std::size_t axis = c.axis_attribute(0);
  check_positions(c, c.input(1), {&c.shape(0)[axis], 1});
  return {c.b.gather_elements(c.input(0), c.input(1), static_cast<std::int64_t>(axis))};
}

Outputs gather_nd(OpContext& c) {
  const std::int64_t batch = c.integer("batch_dims", 0);
  Value* y = c.b.gather_nd(c.input(0), c.input(1), batch);
  const auto depth = static_cast<std::size_t>(c.shape(1).back().value());
  check_positions(c, c.input(1), std::span<const Expr>(c.shape(0)).subspan(static_cast<std::size_t>(batch), depth));
  return {y};
}

Outputs one_hot(OpContext& c) {
  Value *indices = c.b.cast(c.input(0), DType::i64), *values = c.input(2);
  std::vector<Expr> depth;
  if (is_float(c.input(1)->type.dtype) && !c.known(1)) {
    if (c.input(1)->type.elements() != Expr(1)) c.fail("one number as depth", c.input(1)->type.text());
    depth = c.read_sizes(c.input(1), {std::nullopt});
  } else if (is_float(c.input(1)->type.dtype)) {
    constexpr double kDeepest = 1LL << 40;
    const double number = c.number(1, "the depth");
    if (!(number >= 0 && number <= kDeepest)) c.fail(fmt::format("a depth from 0 to {}", kDeepest), fmt::format("{}", number));
    depth.emplace_back(static_cast<std::int64_t>(number));
  } else {
    depth = c.sizes(1, "the depth");
  }
  if (depth.size() != 1) c.fail("one number as depth", std::to_string(depth.size()));
  if (values->type.rank() != 1 || !(values->type.shape[0] == Expr(2))) c.fail("two values, off and on", values->type.text());
  const std::size_t axis = c.axis(c.integer("axis", -1), indices->type.rank() + 1);
  Shape apart = indices->type.shape, ramp(indices->type.rank() + 1, Expr(1));
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), Expr(1));
  ramp[axis] = depth[0];
  // Negative indices count from the end.
  Value* wrapped =
      c.b.where(c.b.call("less", {indices, c.b.scalar(DType::i64, 0)}), c.b.add(indices, c.b.exprs({depth[0]}, {})), indices);
  Value* hot = c.b.call("equal", {c.b.reshape(wrapped, apart), c.b.iota(ramp, static_cast<std::int64_t>(axis), DType::i64)});
  const auto value = [&](std::int64_t i) { return c.b.reshape(c.b.slice_axis(values, 0, Expr(i), Expr(1)), {}); };
  return {c.b.where(hot, value(1), value(0))};
}

constexpr OpRow kIndexingRows[] = {
    {"Gather", 1, 2, 2, gather},       {"GatherElements", 11, 2, 2, gather_elements},
    {"GatherND", 11, 2, 2, gather_nd}, {"com.microsoft.GatherND", 1, 2, 2, gather_nd},
    {"OneHot", 9, 3, 3, one_hot},
};

}  // namespace

std::span<const OpRow> indexing_rows() { return kIndexingRows; }

void check_positions(const OpContext& c, const Value* positions, std::span<const Expr> sizes) {
  const HostTensor* known = constant_of(positions);
  if (!known || !is_integer(known->dtype())) return;
  const auto count = static_cast<std::int64_t>(sizes.size());
  for (std::int64_t i = 0; i < known->elements(); ++i) {
    const Expr& size = sizes[static_cast<std::size_t>(i % count)];
    const std::int64_t at = known->int_at(i);
    if (size.is_constant() && (at < -size.value() || at >= size.value()))
      c.fail(fmt::format("positions from {} to {}", -size.value(), size.value() - 1), std::to_string(at));
  }
}

}  // namespace oclc::onnx

// Shapes as values, new shapes, and tensors from nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ops/shape_rules.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// The largest tensor of floating-point numbers that Range makes here.
constexpr double kLargestRange = 1 << 24;

Value* shape_value(OpContext& c, std::size_t first, std::size_t last) {
  const Shape& shape = c.shape(0);
  std::vector<Expr> dims;
  for (std::size_t i = first; i < last; ++i) dims.push_back(shape[i]);
  const auto count = static_cast<std::int64_t>(dims.size());
  return c.b.exprs(std::move(dims), {count});
}

Outputs shape_of(OpContext& c) {
  const auto rank = static_cast<std::int64_t>(c.rank(0));
  const auto position = [&](std::int64_t at) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank));
  };
  const std::size_t first = position(c.integer("start", 0)), last = position(c.integer("end", rank));
  return {shape_value(c, first, std::max(first, last))};
}

Outputs size_of(OpContext& c) { return {c.b.exprs({c.input(0)->type.elements()}, {})}; }

Outputs reshape(OpContext& c) {
  Value* x = c.input(0);
  const bool zero_is_zero = c.flag("allowzero");
  Shape shape = c.content(1, "the new shape");
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Expr(-1)) {
      if (open) c.fail("at most one -1 in the new shape", text_of(shape));
      open = i;
    } else if (shape[i] == Expr(0) && !zero_is_zero) {
      if (i >= c.rank(0))
        c.fail(fmt::format("a 0 only in the first {} dimensions of the new shape", c.rank(0)), text_of(shape));
      shape[i] = c.shape(0)[i];
    } else if (known_less(shape[i], Expr(0))) {
      c.fail("dimensions of at least -1", text_of(shape));
    }
  }
  if (open) {
    shape[*open] = 1;
    const Expr rest = product(shape);
    if (rest == Expr(0)) c.fail("a -1 beside dimensions other than 0", text_of(c.content(1, "the new shape")));
    shape[*open] = floor_div(x->type.elements(), rest);
  }
  return {shape == x->type.shape ? x : c.b.reshape(x, std::move(shape))};
}

Outputs flatten(OpContext& c) {
  Value* x = c.input(0);
  const auto rank = static_cast<std::int64_t>(x->type.rank());
  std::int64_t axis = c.integer("axis", 1);
  if (axis < -rank || axis > rank) c.fail(fmt::format("an axis from {} to {}", -rank, rank), std::to_string(axis));
  if (axis < 0) axis += rank;
  const std::span<const Expr> all(x->type.shape);
  return {c.b.reshape(
      x, {product(all.first(static_cast<std::size_t>(axis))), product(all.subspan(static_cast<std::size_t>(axis)))})};
}

Outputs squeeze(OpContext& c, const std::optional<Ints>& given) {
  Value* x = c.input(0);
  Shape shape;
  std::vector<std::int64_t> axes;
  if (given) axes = c.axes(*given, x->type.rank());
  for (std::size_t i = 0; i < x->type.rank(); ++i) {
    const Expr& dim = x->type.shape[i];
    const bool named = std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) > 0;
    if (named && !(dim == Expr(1))) c.fail(fmt::format("axis {} of size 1", i), x->type.text());
    if (named || (!given && dim == Expr(1))) continue;
    shape.push_back(dim);
  }
  return {c.b.reshape(x, std::move(shape))};
}

Outputs squeeze_attribute(OpContext& c) { return squeeze(c, c.has("axes") ? std::optional(c.integers("axes")) : std::nullopt); }
Outputs squeeze_input(OpContext& c) {
  return squeeze(c, c.optional_input(1) ? std::optional(c.numbers(1, "axes")) : std::nullopt);
}

Outputs unsqueeze(OpContext& c, const Ints& given) {
  Value* x = c.input(0);
  const std::size_t rank = x->type.rank() + given.size();
  const std::vector<std::int64_t> axes = c.axes(given, rank);
  Shape shape;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const bool added = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
    shape.push_back(added ? Expr(1) : x->type.shape[next++]);
  }
  return {c.b.reshape(x, std::move(shape))};
}

Outputs unsqueeze_attribute(OpContext& c) { return unsqueeze(c, c.integers("axes")); }
Outputs unsqueeze_input(OpContext& c) { return unsqueeze(c, c.numbers(1, "axes")); }

Outputs expand(OpContext& c) { return {c.b.expand(c.input(0), c.content(1, "the new shape"))}; }

Outputs constant(OpContext& c) {
  if (c.has("value")) return {c.b.constant(c.tensor("value"))};
  if (c.has("value_int")) return {c.b.constant(HostTensor::from_ints(std::vector{c.integer("value_int")}).reshaped({}))};
  if (c.has("value_ints")) return {c.b.ints(c.integers("value_ints"))};
  if (c.has("value_float")) return {c.b.scalar(DType::f32, c.real("value_float"))};
  if (c.has("value_floats")) {
    const std::vector<double> values = c.reals("value_floats");
    return {c.b.floats(std::vector<float>(values.begin(), values.end()), {static_cast<std::int64_t>(values.size())})};
  }
  if (c.has("value_string") || c.has("value_strings")) {
    const bool one = c.has("value_string");
    const std::vector<std::string> texts = one ? std::vector{c.text("value_string")} : c.texts("value_strings");
    for (const std::string& text : texts) {
      if (text.find('\0') != std::string::npos) c.unsupported("texts without NUL", "one with a NUL");
    }
    return {c.b.constant(HostTensor::from_texts(texts, one ? Ints{} : Ints{static_cast<std::int64_t>(texts.size())}))};
  }
  if (c.has("sparse_value")) c.unsupported("a dense tensor", "attribute 'sparse_value'");
  c.fail("an attribute 'value'", "none");
}

Outputs constant_of_shape(OpContext& c) {
  const Shape shape = c.content(0, "the shape");
  for (const Expr& dim : shape) {
    if (known_less(dim, Expr(0))) c.fail("dimensions of at least 0", text_of(shape));
  }
  if (!c.has("value")) return {c.b.expand(c.b.scalar(DType::f32, 0), shape)};
  const HostTensor& value = c.tensor("value");
  if (value.elements() != 1) c.fail("one number as value", value.type().text());
  return {c.b.expand(c.b.constant(value.reshaped({})), shape)};
}

Outputs range(OpContext& c) {
  const DType dtype = c.input(0)->type.dtype;
  if (is_float(dtype)) {
    const double start = c.number(0, "the start"), limit = c.number(1, "the limit"), delta = c.number(2, "the step");
    const double count = std::max(0.0, std::ceil((limit - start) / delta));
    if (!(count <= kLargestRange))
      c.fail(fmt::format("at most {} numbers", kLargestRange), fmt::format("{} to {} in steps of {}", start, limit, delta));
    HostTensor values(dtype, {static_cast<std::int64_t>(count)});
    for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, start + static_cast<double>(i) * delta);
    return {c.b.constant(std::move(values))};
  }
  const auto one = [&](std::size_t i, std::string_view what) {
    const std::vector<Expr> values = c.content(i, what);
    if (values.size() != 1) c.fail(fmt::format("one number as {}", what), std::to_string(values.size()));
    return values[0];
  };
  const Expr start = one(0, "the start"), limit = one(1, "the limit"), delta = one(2, "the step");
  if (!delta.is_constant() || delta.value() == 0) c.fail("a constant step other than 0", delta.text());
  const Expr count = delta.value() > 0 ? ceil_div(limit - start, delta) : ceil_div(start - limit, -delta);
  return {c.b.iota({known_nonnegative(count) ? count : max(count, Expr(0))}, 0, dtype, start, delta)};
}

Outputs eye_like(OpContext& c) {
  Value* x = c.input(0);
  if (x->type.rank() != 2) c.fail("a matrix", x->type.text());
  const DType dtype = c.dtype("dtype", x->type.dtype);
  Value* row = c.b.iota({x->type.shape[0], Expr(1)}, 0, DType::i64, Expr(c.integer("k", 0)));
  Value* column = c.b.iota({Expr(1), x->type.shape[1]}, 1, DType::i64);
  return {c.b.cast(c.b.call("equal", {row, column}), dtype)};
}

constexpr OpRow kRows[] = {
    {"Constant", 1, 0, 0, constant},
    {"ConstantOfShape", 9, 1, 1, constant_of_shape},
    {"Expand", 8, 2, 2, expand},
    {"EyeLike", 9, 1, 1, eye_like},
    {"Flatten", 1, 1, 1, flatten},
    {"Range", 11, 3, 3, range},
    {"Reshape", 5, 2, 2, reshape},
    {"Shape", 1, 1, 1, shape_of},
    {"Size", 1, 1, 1, size_of},
    {"Squeeze", 1, 1, 1, squeeze_attribute},
    {"Squeeze", 13, 1, 2, squeeze_input},
    {"Unsqueeze", 1, 1, 1, unsqueeze_attribute},
    {"Unsqueeze", 13, 2, 2, unsqueeze_input},
};

}  // namespace

std::span<const OpRow> shape_rows() { return kRows; }

}  // namespace oclc::onnx

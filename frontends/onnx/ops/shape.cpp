// Shapes as values, new shapes, and tensors from nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ops/assumptions.h"
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

// A new shape that the model's data decide: what a 0 and a -1 stand for is computed beside, and -1 where the elements do not
// fit.
Outputs reshape_to_data(OpContext& c, std::vector<std::optional<Expr>> known, bool zero_is_zero) {
  Value* x = c.input(0);
  const auto n = static_cast<std::int64_t>(known.size());
  const auto number = [&](std::int64_t value) { return c.b.scalar(DType::i64, static_cast<double>(value)); };
  std::vector<Expr> own;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const bool zero = known[i] && *known[i] == Expr(0) && !zero_is_zero;
    own.push_back(i < c.rank(0) ? c.shape(0)[i] : Expr(-1));
    if (zero) known[i] = own.back();
    if (known[i] && *known[i] == Expr(-1)) known[i].reset();
  }
  Value* wanted = c.b.reshape(c.b.cast(c.input(1), DType::i64), {Expr(n)});
  if (!zero_is_zero) wanted = c.b.where(c.b.call("equal", {wanted, number(0)}), c.b.exprs(own, {n}), wanted);
  Value* open = c.b.call("equal", {wanted, number(-1)});
  Value* others = c.b.reduce("reduce_prod", c.b.where(open, number(1), wanted), {0}, true);
  Value* total = c.b.exprs({x->type.elements()}, {1});
  Value* filled = c.b.where(open, c.b.div(total, others), wanted);
  Value* fits = c.b.call("equal", {c.b.reduce("reduce_prod", filled, {0}, true), total});
  const Shape shape = c.read_sizes(c.b.where(fits, filled, number(-1)), known);
  if (x->type.elements() == Expr(0)) return {c.b.expand(c.b.scalar(x->type.dtype, 0), shape)};
  // That both shapes have as many elements is seen when the sizes are read: the slice is all of them.
  Value* flat = c.b.reshape(x, {x->type.elements()});
  return {c.b.reshape(c.b.slice_axis(flat, 0, Expr(0), product(shape)), shape)};
}

Outputs reshape(OpContext& c) {
  Value* x = c.input(0);
  const bool zero_is_zero = c.flag("allowzero");
  const auto known = c.parts(1, "the new shape");
  if (std::any_of(known.begin(), known.end(), [](const auto& e) { return !e; })) return reshape_to_data(c, known, zero_is_zero);
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
  Shape single = x->type.shape;
  for (const std::int64_t axis : axes) single[static_cast<std::size_t>(axis)] = Expr(1);
  x = c.b.fit(x, single);
  for (std::size_t i = 0; i < x->type.rank(); ++i) {
    const Expr& dim = x->type.shape[i];
    const bool named = std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) > 0;
    if (named && !(dim == Expr(1))) c.fail(fmt::format("axis {} of size 1", i), x->type.text());
    if (named || (!given && dim == Expr(1))) continue;
    if (!given && !dim.is_constant() && !known_less(Expr(1), dim)) {
      c.warn(fmt::format("axis {} of size {} is kept, also where it is 1; give that size, or axes to squeeze", i, dim.text()));
      if (Assumptions* sizes = c.b.assumptions()) sizes->keep(dim, c.label());
    }
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

// A shape that the model's data decide: where the operand has one element along an axis, what they say; -1 where it does not
// fit.
Outputs expand(OpContext& c) {
  std::vector<std::optional<Expr>> known = c.parts(1, "the new shape");
  if (std::all_of(known.begin(), known.end(), [](const auto& e) { return e.has_value(); }))
    return {c.b.expand(c.input(0), c.content(1, "the new shape"))};
  Value* x = c.input(0);
  const auto n = static_cast<std::int64_t>(known.size());
  const std::size_t rank = std::max(known.size(), x->type.rank()), given = rank - known.size(), had = rank - x->type.rank();
  const auto number = [&](std::int64_t value) { return c.b.scalar(DType::i64, static_cast<double>(value)); };
  std::vector<Expr> own;
  for (std::size_t i = 0; i < known.size(); ++i) {
    own.push_back(i + given < had ? Expr(1) : x->type.shape[i + given - had]);
    if (!(own[i] == Expr(1))) known[i] = own[i];
  }
  Value *wanted = c.b.reshape(c.b.cast(c.input(1), DType::i64), {Expr(n)}), *mine = c.b.exprs(own, {n});
  const auto is = [&](Value* a, Value* b) { return c.b.call("equal", {a, b}); };
  Value* fits = c.b.call("or", {c.b.call("or", {is(wanted, number(1)), is(mine, number(1))}), is(wanted, mine)});
  Value* all_fit = c.b.reduce("reduce_min", c.b.cast(fits, DType::i64), {0}, true);
  Value* sizes = c.b.where(is(mine, number(1)), wanted, mine);
  const std::vector<Expr> read = c.read_sizes(c.b.where(is(all_fit, number(1)), sizes, number(-1)), known);
  Shape shape(x->type.shape.begin(), x->type.shape.begin() + static_cast<std::ptrdiff_t>(given > had ? given - had : 0));
  shape.insert(shape.end(), read.begin(), read.end());
  return {c.b.expand(x, std::move(shape))};
}

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
  const Shape shape = c.sizes(0, "the shape");
  for (const Expr& dim : shape) {
    if (known_less(dim, Expr(0))) c.fail("dimensions of at least 0", text_of(shape));
  }
  if (!c.has("value")) return {c.b.expand(c.b.scalar(DType::f32, 0), shape)};
  const HostTensor& value = c.tensor("value");
  if (value.elements() != 1) c.fail("one number as value", value.type().text());
  return {c.b.expand(c.b.constant(value.reshaped({})), shape)};
}

// Bounds or a step that the model's data decide: how many numbers there are is computed beside, -1 if the step is 0 or anything
// NaN.
Outputs range_of_data(OpContext& c) {
  const DType dtype = c.input(0)->type.dtype;
  Value* operand[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    operand[i] = c.input(i);
    if (operand[i]->type.dtype != dtype || !(operand[i]->type.elements() == Expr(1)))
      c.fail(fmt::format("one {} as operand {}", name_of(dtype), i), operand[i]->type.text());
    operand[i] = c.b.reshape(operand[i], {Expr(1)});
  }
  Value *start = operand[0], *step = operand[2], *count = nullptr;
  const DType wide = is_float(dtype) ? (dtype == DType::f64 ? DType::f64 : DType::f32) : DType::i64;
  Value *span = c.b.sub(c.b.cast(operand[1], wide), c.b.cast(start, wide)), *each = c.b.cast(step, wide);
  const auto number = [&](double value) { return c.b.scalar(wide, value); };
  Value* none = c.b.call("equal", {each, number(0)});
  if (is_float(dtype)) {
    Value* quotient = c.b.unary("ceil", c.b.div(span, each));
    none = c.b.call("or", {none, c.b.unary("is_nan", quotient)});
    count = c.b.cast(c.b.min(c.b.where(none, number(0), quotient), number(2.0 * kOpenDim)), DType::i64);
  } else {
    count = c.b.div(c.b.sub(c.b.add(span, each), c.b.unary("sign", each)), each);
  }
  count = c.b.where(none, c.b.scalar(DType::i64, -1), c.b.max(count, c.b.scalar(DType::i64, 0)));
  const Expr size = c.read_sizes(count, {std::nullopt}).at(0);
  return {c.b.add(start, c.b.mul(c.b.cast(c.b.iota({size}, 0, DType::i64), dtype), step))};
}

// The whole number that operand i is: as an integer, or cast to a real number that holds it exactly (sizes are below 2^24).
std::optional<Expr> whole_number(const OpContext& c, std::size_t i) {
  const Value* x = c.input(i);
  if (const auto known = c.known(i); known && is_float(x->type.dtype) && known->elements() == 1) {
    const double v = known->at(0);
    return std::fabs(v) < kLargestRange && v == std::floor(v) ? std::optional(Expr(static_cast<std::int64_t>(v)))
                                                              : std::nullopt;
  }
  while (x->producer && !x->content &&
         (x->producer->op->name == "reshape" ||
          (x->producer->op->name == "cast" && (x->type.dtype == DType::f32 || x->type.dtype == DType::f64))))
    x = x->producer->inputs[0];
  return x->content && x->content->size() == 1 && is_integer(x->type.dtype) ? std::optional(x->content->front()) : std::nullopt;
}

Outputs range(OpContext& c) {
  c.ignore({"stash_type"});  // what lies between is wide enough
  const DType dtype = c.input(0)->type.dtype;
  const bool known = c.known(0) && c.known(1) && c.known(2);
  std::optional<Expr> bounds[3];
  for (std::size_t i = 0; i < 3 && !(known && is_float(dtype)); ++i) {
    bounds[i] = whole_number(c, i);
    if (!bounds[i] && !known) return range_of_data(c);
  }
  if (!known && !c.known(2)) return range_of_data(c);
  if (known && is_float(dtype)) {
    const double start = c.number(0, "the start"), limit = c.number(1, "the limit"), delta = c.number(2, "the step");
    const double count = std::max(0.0, std::ceil((limit - start) / delta));
    if (!(count <= kLargestRange))
      c.fail(fmt::format("at most {} numbers", kLargestRange), fmt::format("{} to {} in steps of {}", start, limit, delta));
    HostTensor values(dtype, {static_cast<std::int64_t>(count)});
    for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, start + static_cast<double>(i) * delta);
    return {c.b.constant(std::move(values))};
  }
  const auto one = [&](std::size_t i, std::string_view what) {
    if (bounds[i]) return *bounds[i];
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

constexpr OpRow kShapeRows[] = {
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

std::span<const OpRow> shape_rows() { return kShapeRows; }

}  // namespace oclc::onnx

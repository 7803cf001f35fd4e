// Operators that move elements.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ops/shape_rules.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Outputs same(OpContext& c) { return {c.input(0)}; }

// Until opset 11 a dropout does nothing unless the network is trained. The attribute `seed` is not used: all layers draw from
// the seed of the plan.
Outputs dropout(OpContext& c) {
  c.ignore({"seed"});
  Value* x = c.input(0);
  const auto everything = [&] { return c.b.expand(c.b.scalar(DType::boolean, 1), x->type.shape); };
  const double ratio = c.real("ratio", 0.5);
  if (!c.training() || ratio == 0) return {x, c.wants_output(1) ? everything() : nullptr};
  if (!(ratio >= 0 && ratio < 1)) c.fail("a ratio of at least 0 and less than 1", fmt::format("{}", ratio));
  const Attributes attributes{{"ratio", ratio}};
  if (!c.wants_output(1)) return {c.b.call("dropout", {x}, attributes)};
  Value* factor = c.b.call("dropout", {c.b.expand(c.b.scalar(x->type.dtype, 1), x->type.shape)}, attributes);
  return {c.b.mul(x, factor), c.b.call("greater", {factor, c.b.scalar(x->type.dtype, 0)})};
}

Outputs transpose(OpContext& c) {
  Value* x = c.input(0);
  Ints perm(x->type.rank());
  std::iota(perm.rbegin(), perm.rend(), 0);
  perm = c.integers("perm", perm);
  if (std::is_sorted(perm.begin(), perm.end()) && perm.size() == x->type.rank() &&
      (perm.empty() || (perm.front() == 0 && perm.back() + 1 == static_cast<std::int64_t>(perm.size())))) {
    if (std::adjacent_find(perm.begin(), perm.end()) == perm.end()) return {x};
  }
  return {c.b.transpose(x, std::move(perm))};
}

// A position in the file, brought near the dimension: exporters write 2^31 - 1 or 2^63 - 1 for "the end".
Expr near_position(const Expr& at, const Expr& dim, bool stop, std::int64_t step) {
  constexpr std::int64_t kFar = INT32_MAX;
  if (!at.is_constant() || (dim.is_constant() && at.value() < kFar && at.value() > -kFar)) return at;
  if (at.value() >= kFar) return stop && step > 0 ? Expr(kSliceEnd) : dim;
  if (at.value() > -kFar) return at;
  if (step > 0) return 0;
  return stop ? Expr(-kSliceEnd) : Expr(-1) - dim;
}

Outputs slice(OpContext& c, const std::vector<Expr>& starts, const std::vector<Expr>& ends, const Ints& axes,
              const Ints& steps) {
  Value* x = c.input(0);
  const Shape& shape = x->type.shape;
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size()) {
    c.fail("as many starts as ends, axes and steps",
           fmt::format("{}, {}, {} and {}", starts.size(), ends.size(), axes.size(), steps.size()));
  }
  c.axes(axes, shape.size());  // each at most once
  std::vector<Expr> first(shape.size(), Expr(0)), sizes = shape;
  Ints step(shape.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = c.axis(axes[i], shape.size());
    if (steps[i] == 0 || steps[i] == INT64_MIN) c.fail("a step other than 0", std::to_string(steps[i]));
    const Expr start = near_position(starts[i], shape[axis], false, steps[i]),
               end = near_position(ends[i], shape[axis], true, steps[i]);
    const SliceRange range = slice_range(shape[axis], start, end, steps[i]);
    first[axis] = range.start;
    sizes[axis] = range.size;
    step[axis] = range.size == Expr(0) ? 1 : steps[i];
    if (const auto symbol = end.symbol_name();
        symbol && shape[axis].is_constant() && steps[i] == 1 && !known_less_equal(end, shape[axis])) {
      c.suggest_bound(
          *symbol, shape[axis].value(),
          fmt::format("node '{}' takes the first {} of {} positions", printable(c.label()), *symbol, shape[axis].text()));
    }
    if (range.size == Expr(0)) first[axis] = 0;
  }
  const bool whole = sizes == shape && std::all_of(first.begin(), first.end(), [](const Expr& e) { return e == Expr(0); }) &&
                     std::all_of(step.begin(), step.end(), [](std::int64_t s) { return s == 1; });
  return {whole ? x : c.b.slice(x, std::move(first), std::move(sizes), std::move(step))};
}

std::vector<Expr> exprs_of(const Ints& numbers) { return {numbers.begin(), numbers.end()}; }

Ints first_axes(std::size_t count) {
  Ints axes(count);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Outputs slice_attributes(OpContext& c) {
  const Ints starts = c.integers("starts"), ends = c.integers("ends"), axes = c.integers("axes", first_axes(starts.size()));
  return slice(c, exprs_of(starts), exprs_of(ends), axes, Ints(starts.size(), 1));
}

// Element `i` of a vector of positions, counted from the front of an axis and held between two of its positions.
Value* position_within(OpContext& c, Value* list, std::size_t i, const Expr& dim, const Expr& low, const Expr& high) {
  const auto number = [&](const Expr& e) { return c.b.exprs({e}, {1}); };
  Value* at = c.b.cast(c.b.slice_axis(list, 0, Expr(static_cast<std::int64_t>(i)), Expr(1)), DType::i64);
  at = c.b.where(c.b.call("less", {at, number(0)}), c.b.add(at, number(dim)), at);
  return c.b.max(c.b.min(at, number(high)), number(low));
}

// From where to where is computed when the plan runs; an axis keeps at most all of its elements.
Value* sliced_by_data(OpContext& c, Value* x, std::size_t axis, std::size_t i, std::int64_t step) {
  const auto number = [&](const Expr& e) { return c.b.exprs({e}, {1}); };
  const Expr dim = x->type.shape[axis], low = step > 0 ? Expr(0) : Expr(-1), high = step > 0 ? dim : dim - 1;
  Value *start = position_within(c, c.input(1), i, dim, step > 0 ? Expr(0) : min(Expr(0), high), high),
        *end = position_within(c, c.input(2), i, dim, low, high);
  Value* count = c.b.div(c.b.add(c.b.sub(end, start), number(step - (step > 0 ? 1 : -1))), number(step));
  const Expr size = c.b.read_dims(c.b.max(c.b.min(count, number(dim)), number(0)), "kept", {dim}).at(0);
  Value* at = c.b.add(start, c.b.iota({size}, 0, DType::i64, Expr(0), Expr(step)));
  return c.b.gather(x, at, static_cast<std::int64_t>(axis));
}

Outputs slice_inputs(OpContext& c) {
  const auto starts = c.parts(1, "starts"), ends = c.parts(2, "ends");
  const Ints axes = c.optional_input(3) ? c.numbers(3, "axes") : first_axes(starts.size());
  const Ints steps = c.optional_input(4) ? c.numbers(4, "steps") : Ints(starts.size(), 1);
  std::vector<Expr> from, to;
  Ints known_axes, known_steps;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < starts.size() && starts.size() == ends.size(); ++i) {
    if (!starts[i] || !ends[i] || i >= axes.size() || i >= steps.size()) {
      open.push_back(i);
      continue;
    }
    from.push_back(*starts[i]);
    to.push_back(*ends[i]);
    known_axes.push_back(axes[i]);
    known_steps.push_back(steps[i]);
  }
  if (open.empty() || axes.size() != starts.size() || steps.size() != starts.size() || ends.size() != starts.size())
    return slice(c, from, to, axes, steps);
  c.axes(axes, c.rank(0));
  Value* x = slice(c, from, to, known_axes, known_steps).at(0);
  for (const std::size_t i : open) {
    if (steps[i] == 0 || steps[i] == INT64_MIN) c.fail("a step other than 0", std::to_string(steps[i]));
    x = sliced_by_data(c, x, c.axis(axes[i], c.rank(0)), i, steps[i]);
  }
  return {x};
}

Outputs concat(OpContext& c) {
  const std::size_t axis = c.axis_attribute();
  std::vector<Value*> values;
  for (std::size_t i = 0; i < c.inputs(); ++i) values.push_back(c.input(i));
  return {values.size() == 1 ? values[0] : c.b.concat(std::move(values), static_cast<std::int64_t>(axis))};
}

Outputs cut(OpContext& c, std::size_t axis, const std::vector<Expr>& sizes) {
  if (sizes.size() != static_cast<std::size_t>(c.outputs()))
    c.fail(fmt::format("{} sizes, one per output", c.outputs()), std::to_string(sizes.size()));
  Expr total = 0;
  for (const Expr& size : sizes) {
    if (known_less(size, Expr(0))) c.fail("sizes of at least 0", size.text());
    total += size;
  }
  const Expr& dim = c.shape(0)[axis];
  if (!(total == dim))
    c.fail(fmt::format("sizes that sum up to {}", dim.text()), fmt::format("{} = {}", text_of(sizes), total.text()));
  Outputs parts;
  Expr start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    parts.push_back(c.wants_output(static_cast<int>(i))
                        ? c.b.slice_axis(c.input(0), static_cast<std::int64_t>(axis), start, sizes[i])
                        : nullptr);
    start += sizes[i];
  }
  return parts;
}

// `parts` equal parts, the last one smaller if the operator allows that.
Outputs cut_evenly(OpContext& c, std::size_t axis, std::int64_t parts, bool uneven) {
  const Expr& dim = c.shape(0)[axis];
  if (parts < 1 || parts != c.outputs()) c.fail(fmt::format("{} parts, one per output", c.outputs()), std::to_string(parts));
  const Expr each = uneven ? ceil_div(dim, Expr(parts)) : floor_div(dim, Expr(parts));
  std::vector<Expr> sizes(static_cast<std::size_t>(parts), each);
  if (uneven) {
    sizes.back() = dim - each * Expr(parts - 1);
    if (!known_nonnegative(sizes.back()))
      c.fail(fmt::format("at least {} elements to split into {}", parts, parts), dim.text());
  } else if (!(each * Expr(parts) == dim)) {
    c.fail(fmt::format("a dimension that {} equal parts fill", parts), dim.text());
  }
  return cut(c, axis, sizes);
}

Outputs split_attribute(OpContext& c) {
  const std::size_t axis = c.axis_attribute(0);
  if (c.has("split")) return cut(c, axis, exprs_of(c.integers("split")));
  return cut_evenly(c, axis, c.outputs(), false);
}

Outputs split_input(OpContext& c) {
  const std::size_t axis = c.axis_attribute(0);
  const bool counted = c.has("num_outputs");
  if (c.optional_input(1)) {
    if (counted) c.fail("sizes or num_outputs", "both");
    return cut(c, axis, c.content(1, "sizes"));
  }
  return cut_evenly(c, axis, counted ? c.integer("num_outputs") : c.outputs(), c.opset() >= 18);
}

// The tensor repeated without end along each axis, from `before` elements before its first to `after` behind its last.
Value* wrapped(OpContext& c, Value* x, const std::vector<Expr>& before, const std::vector<Expr>& after) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == Expr(0) && after[i] == Expr(0)) continue;
    const Expr dim = x->type.shape[i];
    if (dim == Expr(0)) c.fail(fmt::format("elements to repeat along axis {}", i), x->type.text());
    Value* at = c.b.iota({before[i] + dim + after[i]}, 0, DType::i64, -before[i]);
    x = c.b.gather(x, c.b.call("mod", {at, c.b.exprs({dim}, {})}), static_cast<std::int64_t>(i));
  }
  return x;
}

// `fill`: the padding value if it is computed when the plan runs, else null.
Outputs pad(OpContext& c, const std::vector<Expr>& pads, const Ints& axes, double value, Value* fill = nullptr) {
  Value* x = c.input(0);
  const std::string mode = c.text("mode", "constant");
  if (pads.size() != 2 * axes.size()) c.fail(fmt::format("{} pads", 2 * axes.size()), std::to_string(pads.size()));
  c.axes(axes, x->type.rank());
  std::vector<Expr> before(x->type.rank(), Expr(0)), after = before, start = before, size = x->type.shape;
  bool cuts = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = c.axis(axes[i], x->type.rank());
    for (const bool front : {true, false}) {
      const Expr& amount = pads[front ? i : i + axes.size()];
      if (!known_less(amount, Expr(0))) {
        (front ? before : after)[axis] = amount;
        continue;
      }
      cuts = true;  // a negative pad removes elements
      size[axis] += amount;
      if (front) start[axis] = -amount;
    }
    if (known_less(size[axis], Expr(0))) c.fail("pads that leave 0 or more elements", size[axis].text());
  }
  if (cuts) x = c.b.slice(x, std::move(start), std::move(size), Ints(x->type.rank(), 1));
  const auto zero = [](const Expr& e) { return e == Expr(0); };
  if (std::all_of(before.begin(), before.end(), zero) && std::all_of(after.begin(), after.end(), zero)) return {x};
  if (mode == "wrap") return {wrapped(c, x, before, after)};
  if (!fill || mode != "constant") return {c.b.pad(x, std::move(before), std::move(after), value, mode)};
  Value* inside = c.b.pad(c.b.expand(c.b.scalar(DType::boolean, 1), x->type.shape), before, after);
  return {c.b.where(inside, c.b.pad(x, std::move(before), std::move(after)), fill)};
}

Outputs pad_attributes(OpContext& c) {
  const Ints pads = c.integers("pads");
  return pad(c, exprs_of(pads), first_axes(c.rank(0)), c.real("value", 0.0));
}

Outputs pad_inputs(OpContext& c) {
  const std::vector<Expr> pads = c.sizes(1, "pads");
  Value* fill = c.optional_input(2);
  if (fill && !(fill->type.elements() == Expr(1) && fill->type.dtype == c.input(0)->type.dtype))
    c.fail(fmt::format("one {} as padding value", name_of(c.input(0)->type.dtype)), fill->type.text());
  const auto known = fill ? c.known(2) : std::nullopt;
  const double value = known ? known->at(0) : 0;
  fill = fill && !known ? c.b.reshape(fill, {}) : nullptr;
  const Ints axes = c.optional_input(3) ? c.numbers(3, "axes") : first_axes(c.rank(0));
  return pad(c, pads, axes, value, fill);
}

Outputs tile(OpContext& c) {
  Value* x = c.input(0);
  const std::vector<Expr> repeats = c.sizes(1, "the repeats");
  if (repeats.size() != x->type.rank())
    c.fail(fmt::format("{} repeats, one per axis", x->type.rank()), std::to_string(repeats.size()));
  Shape apart, wide, result;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const Expr& dim = x->type.shape[i];
    if (known_less(repeats[i], Expr(0))) c.fail("repeats of at least 0", repeats[i].text());
    apart.insert(apart.end(), {Expr(1), dim});
    wide.insert(wide.end(), {repeats[i], dim});
    result.push_back(repeats[i] * dim);
  }
  return {c.b.reshape(c.b.expand(c.b.reshape(x, std::move(apart)), std::move(wide)), std::move(result))};
}

Expr exact_part(OpContext& c, const Expr& dim, std::int64_t by) {
  const Expr part = floor_div(dim, Expr(by));
  if (!(part * Expr(by) == dim)) c.fail(fmt::format("a dimension that is a multiple of {}", by), dim.text());
  return part;
}

std::int64_t block_size(OpContext& c) {
  constexpr std::int64_t kLargest = 1 << 15;
  const std::int64_t block = c.integer("blocksize");
  if (c.rank(0) != 4) c.fail("an input of rank 4", c.input(0)->type.text());
  if (block < 1 || block > kLargest) c.fail(fmt::format("a blocksize from 1 to {}", kLargest), std::to_string(block));
  return block;
}

Outputs depth_to_space(OpContext& c) {
  const std::int64_t block = block_size(c);
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.fail("mode DCR or CRD", printable(mode));
  const Shape s = c.shape(0);
  const Expr depth = exact_part(c, s[1], block * block), b = block;
  Value* x = mode == "DCR" ? c.b.transpose(c.b.reshape(c.input(0), {s[0], b, b, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2})
                           : c.b.transpose(c.b.reshape(c.input(0), {s[0], depth, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  return {c.b.reshape(x, {s[0], depth, s[2] * b, s[3] * b})};
}

Outputs space_to_depth(OpContext& c) {
  const std::int64_t block = block_size(c);
  const Shape s = c.shape(0);
  const Expr high = exact_part(c, s[2], block), wide = exact_part(c, s[3], block), b = block;
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.fail("mode DCR or CRD", printable(mode));
  Value* x = c.b.reshape(c.input(0), {s[0], s[1], high, b, wide, b});
  x = c.b.transpose(x, mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  return {c.b.reshape(x, {s[0], s[1] * b * b, high, wide})};
}

Outputs trilu(OpContext& c) {
  Value* x = c.input(0);
  if (x->type.rank() < 2) c.fail("an input of rank 2 or more", x->type.text());
  Value* k = c.optional_input(1) ? c.input(1) : c.b.scalar(DType::i64, 0);
  if (!(k->type.elements() == Expr(1)) || !is_integer(k->type.dtype)) c.fail("one whole number as diagonal", k->type.text());
  const bool upper = c.flag("upper", true);
  const Expr rows = x->type.shape[x->type.rank() - 2], columns = x->type.shape[x->type.rank() - 1];
  const auto known = c.optional_input(1) ? c.known(1) : std::optional(HostTensor(DType::i64, {1}));
  Value* diagonal = c.b.iota({rows, Expr(1)}, 0, DType::i64, Expr(known ? known->int_at(0) : 0));
  if (!known) diagonal = c.b.add(diagonal, c.b.reshape(c.b.cast(k, DType::i64), {}));
  Value* column = c.b.iota({Expr(1), columns}, 1, DType::i64);
  Value* kept = c.b.call(upper ? "greater_equal" : "less_equal", {column, diagonal});
  return {c.b.where(kept, x, c.b.scalar(x->type.dtype, 0))};
}

constexpr OpRow kMovementRows[] = {
    {"Concat", 4, 1, kAnyNumber, concat},
    {"DepthToSpace", 1, 1, 1, depth_to_space},
    {"Dropout", 7, 1, 1, dropout},
    {"Identity", 1, 1, 1, same, {}, true},
    {"Pad", 2, 1, 1, pad_attributes},
    {"Pad", 11, 2, 4, pad_inputs},
    {"Slice", 1, 1, 1, slice_attributes},
    {"Slice", 10, 3, 5, slice_inputs},
    {"SpaceToDepth", 1, 1, 1, space_to_depth},
    {"Split", 1, 1, 1, split_attribute},
    {"Split", 13, 1, 2, split_input},
    {"Tile", 6, 2, 2, tile},
    {"Transpose", 1, 1, 1, transpose},
    {"Trilu", 14, 1, 2, trilu},
    {"com.microsoft.Trilu", 1, 1, 2, trilu},
};

}  // namespace

std::span<const OpRow> movement_rows() { return kMovementRows; }

}  // namespace oclc::onnx

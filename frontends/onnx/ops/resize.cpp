// Resize and Upsample: along each axis a weighted sum of gathered elements. Which elements and with which weights is computed
// here, from sizes that are known when compiling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/support/integer_of.h"
#include "frontends/onnx/axis_product.h"
#include "frontends/onnx/resize_weights.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kLargestAxis = 1 << 24;
// Elements of a sum that are gathered; longer sums are products with a matrix of weights.
constexpr std::int64_t kMostTaps = 64;

Value* along_axis(OpContext& c, Value* x, const ResizeAxis& a, const ResizeMethod& m) {
  const ResizeTaps taps = taps_of(c, m, a);
  Value* result = nullptr;
  const bool product = static_cast<std::int64_t>(taps.index.size()) > kMostTaps;
  if (product) result = axis_product(c.b, x, a.axis, shares_of(c, taps, a, x->type.dtype));
  for (std::size_t k = 0; !product && k < taps.index.size(); ++k) {
    const auto& weights = taps.weight[k];
    if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; })) continue;
    Value* part = c.b.gather(x, c.b.ints(taps.index[k]), static_cast<std::int64_t>(a.axis));
    if (!std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; })) {
      HostTensor factors(x->type.dtype, {a.out});
      for (std::size_t i = 0; i < weights.size(); ++i) factors.set(static_cast<std::int64_t>(i), weights[i]);
      Shape column{Expr(a.out)};
      column.resize(x->type.rank() - a.axis, Expr(1));
      part = c.b.mul(part, c.b.reshape(c.b.constant(std::move(factors)), std::move(column)));
    }
    result = result ? c.b.add(result, part) : part;
  }
  if (m.coordinates != "tf_crop_and_resize") return result;
  HostTensor inside(DType::boolean, {a.out});
  for (std::int64_t i = 0; i < a.out; ++i) {
    const double at = source_position(m, a, i);
    inside.set_int(i, at >= 0 && at <= static_cast<double>(a.in - 1));
  }
  Shape column{Expr(a.out)};
  column.resize(x->type.rank() - a.axis, Expr(1));
  Value* kept = c.b.reshape(c.b.constant(std::move(inside)), std::move(column));
  return c.b.where(kept, result, c.b.scalar(x->type.dtype, m.outside));
}

// The same where sizes or the scale are known when the plan runs alone: positions and weights are computed beside, in single
// precision. `scale`: f32[1]; `span`: the new size before it is rounded, f32[1].
Value* along_axis_of_data(OpContext& c, Value* x, std::size_t axis, const Expr& out, Value* scale, Value* span,
                          const ResizeMethod& m) {
  Builder& b = c.b;
  const Expr& in = x->type.shape[axis];
  const auto number = [&](double value) { return b.scalar(DType::f32, value); };
  const auto size_of = [&](const Expr& e) { return b.cast(b.exprs({e}, {1}), DType::f32); };
  Value *at = b.cast(b.iota({out}, 0, DType::i64), DType::f32), *middle = b.add(at, 0.5), *place = nullptr;
  if (m.coordinates == "align_corners") {
    Value* steps = b.add(b.where(b.call("greater", {scale, number(1)}), size_of(out), span), -1);
    place = b.div(b.mul(at, b.add(size_of(in), -1)), b.where(b.call("greater", {steps, number(0)}), steps, number(1)));
  } else if (m.coordinates == "asymmetric") {
    place = b.div(at, scale);
  } else if (m.coordinates == "half_pixel_symmetric") {
    Value* adjusted = b.div(size_of(out), b.mul(scale, size_of(in)));
    Value* offset = b.mul(b.mul(size_of(in), 0.5), b.add(b.unary("neg", adjusted), 1));
    place = b.add(b.add(offset, b.div(middle, scale)), -0.5);
  } else {
    place = b.div(middle, scale);
    if (m.coordinates != "tf_half_pixel_for_nn") place = b.add(place, -0.5);
    if (m.coordinates == "pytorch_half_pixel")
      place = b.where(b.call("less_equal", {size_of(out), number(1)}), number(0), place);
  }
  const auto held = [&](Value* v) { return b.max(b.min(v, b.add(size_of(in), -1)), number(0)); };
  const auto taken = [&](Value* v) { return b.gather(x, b.cast(held(v), DType::i64), static_cast<std::int64_t>(axis)); };
  Value *low = b.unary("floor", place), *fraction = b.sub(place, low);
  if (m.mode == "nearest") {
    if (m.nearest == "floor") return taken(low);
    if (m.nearest == "ceil") return taken(b.unary("ceil", place));
    Value* rounds_up = b.call(m.nearest == "round_prefer_floor" ? "greater" : "greater_equal", {fraction, number(0.5)});
    return taken(b.where(rounds_up, b.add(low, 1), low));
  }
  std::vector<Value*> places, weights;
  const int first = m.mode == "linear" ? 0 : -1, last = m.mode == "linear" ? 1 : 2;
  for (int k = first; k <= last; ++k) {
    Value* distance = b.unary("abs", b.add(fraction, -static_cast<double>(k)));
    Value* w = nullptr;
    if (m.mode == "linear") {
      w = b.max(b.add(b.unary("neg", distance), 1), number(0));
    } else if (k == 0 || k == 1) {  // at most 1 apart
      w = b.add(b.mul(b.mul(b.add(b.mul(distance, m.cubic + 2), -(m.cubic + 3)), distance), distance), 1);
    } else {
      Value* inner = b.add(b.mul(b.add(b.mul(distance, m.cubic), -5 * m.cubic), distance), 8 * m.cubic);
      w = b.add(b.mul(inner, distance), -4 * m.cubic);
    }
    Value* where = b.add(low, k);
    if (m.exclude_outside) w = b.where(b.call("equal", {where, held(where)}), w, number(0));
    places.push_back(where);
    weights.push_back(w);
  }
  Value *sum = nullptr, *result = nullptr;
  for (Value* w : weights) sum = sum ? b.add(sum, w) : w;
  Shape column{out};
  column.resize(x->type.rank() - axis, Expr(1));
  for (std::size_t k = 0; k < places.size(); ++k) {
    Value* w = m.exclude_outside ? b.div(weights[k], sum) : weights[k];
    Value* part = b.mul(taken(places[k]), b.reshape(b.cast(w, x->type.dtype), column));
    result = result ? b.add(result, part) : part;
  }
  return result;
}

// A whole number of copies of each element, whatever the size of the axis.
Value* repeated(OpContext& c, Value* x, std::size_t axis, std::int64_t times) {
  Shape apart = x->type.shape, wide, joined = apart;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Expr(1));
  wide = apart;
  wide[axis + 1] = times;
  joined[axis] *= Expr(times);
  return c.b.reshape(c.b.expand(c.b.reshape(x, std::move(apart)), std::move(wide)), std::move(joined));
}

bool repeats(const ResizeMethod& m) {
  return m.mode == "nearest" && ((m.coordinates == "asymmetric" && m.nearest == "floor") ||
                                 (m.coordinates == "half_pixel" && m.nearest.starts_with("round")));
}

void check_data(OpContext& c, const ResizeMethod& m, const Value* x) {
  if (m.coordinates == "tf_crop_and_resize" || m.antialias)
    c.unsupported("sizes known when compiling along resized axes, as regions are cropped or antialiasing is wanted",
                  x->type.text(), "give them with --shape or --dim");
}

// An axis whose size is known when the plan runs, or that gets such a size.
Value* resized_to_data(OpContext& c, Value* x, std::size_t axis, std::optional<double> scale, const std::optional<Expr>& size,
                       const ResizeMethod& m) {
  check_data(c, m, x);
  const auto value = [&](const Expr& e) { return c.b.cast(c.b.exprs({e}, {1}), DType::f32); };
  const Expr in = x->type.shape[axis];
  if (size) {
    Value* factor = c.b.div(value(*size), value(in));
    return along_axis_of_data(c, x, axis, *size, factor, value(*size), m);
  }
  Value *factor = c.b.reshape(c.b.scalar(DType::f32, *scale), {Expr(1)}), *span = c.b.mul(value(in), factor);
  const Expr out = c.read_sizes(c.b.unary("floor", span), {std::nullopt}).at(0);
  return along_axis_of_data(c, x, axis, out, factor, span, m);
}

Value* resized_axis(OpContext& c, Value* x, std::size_t axis, std::optional<double> scale, const std::optional<Expr>& size,
                    const ResizeMethod& m, double roi_begin, double roi_end) {
  const Expr& in = x->type.shape[axis];
  if (size && *size == in && m.coordinates != "tf_crop_and_resize") return x;
  if (scale && *scale == 1 && m.coordinates != "tf_crop_and_resize") return x;
  if (!in.is_constant() && scale && *scale == std::floor(*scale) && repeats(m)) return repeated(c, x, axis, integer_of(*scale));
  if (!in.is_constant() || (size && !size->is_constant())) return resized_to_data(c, x, axis, scale, size, m);
  ResizeAxis a{axis, in.value(), 0, 1, roi_begin, roi_end};
  if (a.in == 0) c.fail("elements along resized axes", x->type.text());
  const auto in_size = static_cast<double>(a.in);
  if (size) {
    a.out = size->value();
    a.span = static_cast<double>(a.out);
    a.scale = static_cast<double>(a.out) / in_size;
  } else {
    a.scale = *scale;
    const double span = m.coordinates == "tf_crop_and_resize" ? roi_end - roi_begin : 1;
    const double out = std::floor(in_size * span * a.scale);
    // The specification's examples of a smaller size go by the size before it is rounded. Of a larger one it has no example
    // that is rounded: the corners are aligned, as everywhere else.
    a.span = a.scale > 1 ? out : in_size * a.scale;
    a.out = out >= 0 && out <= static_cast<double>(kLargestAxis) ? static_cast<std::int64_t>(out) : -1;
  }
  if (a.out < 1 || a.out > kLargestAxis)
    c.fail(fmt::format("a new size from 1 to {} of axis {}", kLargestAxis, axis),
           scale ? fmt::format("scale {}", *scale) : size->text());
  return along_axis(c, x, a, m);
}

std::vector<double> numbers_of(OpContext& c, std::size_t i, std::string_view what) {
  Value* v = c.optional_input(i);
  if (!v || v->type.elements() == Expr(0)) return {};
  return c.reals_of(i, what);
}

void check_scale(OpContext& c, double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) c.fail("scales greater than 0", fmt::format("{}", scale));
}

ResizeMethod method_of(OpContext& c) {
  ResizeMethod m;
  m.mode = c.text("mode", "nearest");
  if (m.mode == "bilinear" || m.mode == "trilinear") m.mode = "linear";
  if (m.mode != "nearest" && m.mode != "linear" && m.mode != "cubic")
    c.fail("mode nearest, linear or cubic", printable(m.mode));
  m.coordinates = c.text("coordinate_transformation_mode", c.opset() < 11 ? "asymmetric" : "half_pixel");
  static constexpr std::string_view kCoordinates[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                                      "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                                      "tf_crop_and_resize"};
  if (std::find(std::begin(kCoordinates), std::end(kCoordinates), m.coordinates) == std::end(kCoordinates))
    c.fail("a coordinate_transformation_mode of ONNX", printable(m.coordinates));
  m.nearest = c.text("nearest_mode", c.opset() < 11 ? "floor" : "round_prefer_floor");
  static constexpr std::string_view kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  if (std::find(std::begin(kNearest), std::end(kNearest), m.nearest) == std::end(kNearest))
    c.fail("a nearest_mode of ONNX", printable(m.nearest));
  m.cubic = c.real("cubic_coeff_a", -0.75);
  m.outside = c.real("extrapolation_value", 0.0);
  m.exclude_outside = c.flag("exclude_outside");
  m.antialias = c.flag("antialias");
  c.ignore({"keep_aspect_ratio_policy"});  // of sizes alone
  return m;
}

// `scales` and `sizes` are of the axes `axes`; one of them is empty.
Outputs resize(OpContext& c, const ResizeMethod& m, const Ints& axes, const std::vector<double>& scales,
               std::vector<Expr> sizes, const std::vector<double>& roi) {
  Value* x = c.input(0);
  if (!is_float(x->type.dtype) && m.mode != "nearest") c.unsupported("floating-point numbers to interpolate", x->type.text());
  const std::size_t given = scales.empty() ? sizes.size() : scales.size();
  if (given != axes.size()) c.fail(fmt::format("{} scales or sizes", axes.size()), std::to_string(given));
  if (m.coordinates == "tf_crop_and_resize" && roi.size() != 2 * axes.size())
    c.fail(fmt::format("{} numbers as roi", 2 * axes.size()), std::to_string(roi.size()));
  for (const double place : roi)
    if (!std::isfinite(place)) c.fail("finite numbers as roi", fmt::format("{}", place));
  const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && !sizes.empty()) {
    double chosen = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const Expr& in = x->type.shape[static_cast<std::size_t>(axes[i])];
      if (!in.is_constant() || !sizes[i].is_constant()) c.unsupported("sizes known when compiling", x->type.text());
      const double scale = static_cast<double>(sizes[i].value()) / static_cast<double>(in.value());
      chosen = i == 0 ? scale : policy == "not_larger" ? std::min(chosen, scale) : std::max(chosen, scale);
    }
    if (policy != "not_larger" && policy != "not_smaller")
      c.fail("keep_aspect_ratio_policy stretch, not_larger or not_smaller", printable(policy));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto in = static_cast<double>(x->type.shape[static_cast<std::size_t>(axes[i])].value());
      sizes[i] = integer_of(std::floor(in * chosen + 0.5));
    }
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!scales.empty()) check_scale(c, scales[i]);
    x = resized_axis(c, x, static_cast<std::size_t>(axes[i]), scales.empty() ? std::nullopt : std::optional(scales[i]),
                     sizes.empty() ? std::nullopt : std::optional(sizes[i]), m, roi.empty() ? 0 : roi[i],
                     roi.empty() ? 1 : roi[axes.size() + i]);
  }
  return {x};
}

// Scales that the model's data decide. An axis whose scale is 1 when the plan runs stays as it is.
Outputs resize_by_data(OpContext& c, const ResizeMethod& m, const Ints& axes, Value* scales) {
  Value* x = c.input(0);
  check_data(c, m, x);
  const auto count = static_cast<std::int64_t>(axes.size());
  if (!is_float(scales->type.dtype) || !(scales->type.elements() == Expr(count)))
    c.fail(fmt::format("{} scales", count), scales->type.text());
  if (!is_float(x->type.dtype) && m.mode != "nearest") c.unsupported("floating-point numbers to interpolate", x->type.text());
  scales = c.b.cast(c.b.reshape(scales, {Expr(count)}), DType::f32);
  std::vector<Expr> in;
  for (const std::int64_t axis : axes) in.push_back(x->type.shape[static_cast<std::size_t>(axis)]);
  Value *spans = c.b.mul(c.b.cast(c.b.exprs(in, {count}), DType::f32), scales), *zero = c.b.scalar(DType::f32, 0);
  Value* valid = c.b.call("greater", {scales, zero});  // not if it is NaN
  Value* out =
      c.b.where(valid, c.b.min(c.b.unary("floor", spans), c.b.scalar(DType::f32, 2.0 * kOpenDim)), c.b.scalar(DType::f32, -1));
  const std::vector<Expr> sizes = c.read_sizes(out, std::vector<std::optional<Expr>>(axes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto own = [&](Value* list) { return c.b.slice_axis(list, 0, Expr(static_cast<std::int64_t>(i)), Expr(1)); };
    x = along_axis_of_data(c, x, static_cast<std::size_t>(axes[i]), sizes[i], own(scales), own(spans), m);
  }
  return {x};
}

Ints all_axes(OpContext& c) {
  Ints axes(c.rank(0));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  return axes;
}

Outputs resize_inputs(OpContext& c) {
  const ResizeMethod m = method_of(c);
  Ints axes = all_axes(c);
  if (c.has("axes")) {
    axes = c.integers("axes");
    for (std::int64_t& axis : axes) axis = static_cast<std::int64_t>(c.axis(axis, c.rank(0)));
  }
  if (Value* given = c.optional_input(2); given && !(given->type.elements() == Expr(0)) && !c.known(2))
    return resize_by_data(c, m, axes, given);
  const std::vector<double> scales = numbers_of(c, 2, "scales");
  std::vector<Expr> sizes;
  if (scales.empty() && c.optional_input(3)) sizes = c.sizes(3, "the sizes");
  const std::vector<double> roi =
      m.coordinates == "tf_crop_and_resize" ? numbers_of(c, 1, "the region") : std::vector<double>();
  return resize(c, m, axes, scales, sizes, roi);
}

Outputs resize_scales(OpContext& c) {
  if (!c.known(1)) return resize_by_data(c, method_of(c), all_axes(c), c.input(1));
  return resize(c, method_of(c), all_axes(c), numbers_of(c, 1, "scales"), {}, {});
}

Outputs upsample_attributes(OpContext& c) { return resize(c, method_of(c), all_axes(c), c.reals("scales"), {}, {}); }

Outputs upsample_factors(OpContext& c) {
  const std::vector<double> scales{1, 1, c.real("height_scale"), c.real("width_scale")};
  return resize(c, method_of(c), all_axes(c), scales, {}, {});
}

constexpr OpRow kResizeRows[] = {
    {"Resize", 10, 2, 2, resize_scales},        {"Resize", 11, 1, 4, resize_inputs},  {"Upsample", 1, 1, 1, upsample_factors},
    {"Upsample", 7, 1, 1, upsample_attributes}, {"Upsample", 9, 2, 2, resize_scales},
};

}  // namespace

std::span<const OpRow> resize_rows() { return kResizeRows; }

}  // namespace oclc::onnx

// Reads between the elements of an image: GridSample and RoiAlign.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Value* size_like(OpContext& c, Value* x, const Expr& size) { return c.b.cast(c.b.exprs({size}, {}), x->type.dtype); }
Value* like(OpContext& c, Value* x, double v) { return c.b.scalar(x->type.dtype, v); }
Value* between(OpContext& c, Value* x, Value* low, Value* high) { return c.b.max(c.b.min(x, high), low); }

struct Sampler {
  std::string mode, padding;
  bool corners = false;
};

// From [-1, 1] to positions along an axis of `size` elements.
Value* unnormalized(OpContext& c, Value* g, Value* size, bool corners) {
  Value* scaled = corners ? c.b.mul(c.b.add(g, 1), c.b.add(size, -1)) : c.b.add(c.b.mul(c.b.add(g, 1), size), -1);
  return c.b.mul(scaled, 0.5);
}

// Positions outside come back as in a mirror at `low` and `high`.
Value* reflected(OpContext& c, Value* x, Value* low, Value* high) {
  Value* span = c.b.sub(high, low);
  Value* period = c.b.max(c.b.mul(span, 2), like(c, x, 1e-30));
  Value* phase = c.b.call("mod", {c.b.sub(x, low), period});
  return c.b.add(low, c.b.min(phase, c.b.sub(period, phase)));
}

Value* padded(OpContext& c, const Sampler& s, Value* x, Value* size) {
  if (s.padding == "zeros") return x;
  Value *zero = like(c, x, 0), *last = c.b.add(size, -1);
  if (s.padding == "border") return between(c, x, zero, last);
  Value* low = s.corners ? zero : like(c, x, -0.5);
  return between(c, reflected(c, x, low, s.corners ? last : c.b.add(size, -0.5)), zero, last);
}

// The elements [n, .., c] of x[n, h * w, c] at rows and columns [n, ..], 0 outside.
Value* pixels(OpContext& c, Value* flat, Value* row, Value* column, const Expr& h, const Expr& w) {
  Value *zero = like(c, row, 0), *bottom = c.b.add(size_like(c, row, h), -1), *right = c.b.add(size_like(c, row, w), -1);
  const auto inside = [&](Value* v, Value* last) {
    return c.b.call("and", {c.b.call("greater_equal", {v, zero}), c.b.call("less_equal", {v, last})});
  };
  Value* held = c.b.call("and", {inside(row, bottom), inside(column, right)});
  Value* line = c.b.cast(between(c, row, zero, bottom), DType::i64);
  Value* at = c.b.add(c.b.mul(line, c.b.exprs({w}, {})), c.b.cast(between(c, column, zero, right), DType::i64));
  Shape tuple = at->type.shape, masked = at->type.shape;
  tuple.emplace_back(1);
  Value* taken = c.b.gather_nd(flat, c.b.reshape(at, tuple), 1);
  masked.emplace_back(1);
  return c.b.where(c.b.reshape(held, masked), taken, like(c, flat, 0));
}

Value* with_channel(OpContext& c, Value* v) {
  Shape shape = v->type.shape;
  shape.emplace_back(1);
  return c.b.reshape(v, std::move(shape));
}

// Weights of the four neighbours at distances 1 + t, t, 1 - t and 2 - t.
std::vector<Value*> cubic_weights(OpContext& c, Value* t) {
  constexpr double a = -0.75;
  const auto near = [&](Value* d) {  // |d| <= 1
    return c.b.add(c.b.mul(c.b.mul(c.b.add(c.b.mul(d, a + 2), -(a + 3)), d), d), 1);
  };
  const auto far = [&](Value* d) {  // 1 < |d| < 2
    return c.b.add(c.b.mul(c.b.add(c.b.mul(c.b.add(c.b.mul(d, a), -5 * a), d), 8 * a), d), -4 * a);
  };
  Value* rest = c.b.add(c.b.unary("neg", t), 1);
  return {far(c.b.add(t, 1)), near(t), near(rest), far(c.b.add(rest, 1))};
}

Outputs grid_sample(OpContext& c) {
  Value *x = c.input(0), *grid = c.input(1);
  Sampler s{c.text("mode", c.opset() < 20 ? "bilinear" : "linear"), c.text("padding_mode", "zeros"), c.flag("align_corners")};
  if (s.mode == "linear") s.mode = "bilinear";
  if (s.mode == "cubic") s.mode = "bicubic";
  if (s.mode != "bilinear" && s.mode != "nearest" && s.mode != "bicubic")
    c.fail("mode bilinear, nearest or bicubic", printable(s.mode));
  if (s.padding != "zeros" && s.padding != "border" && s.padding != "reflection")
    c.fail("padding_mode zeros, border or reflection", printable(s.padding));
  if (x->type.rank() != 4 || grid->type.rank() != 4) c.unsupported("inputs of rank 4", x->type.text());
  const Shape shape = x->type.shape, places = grid->type.shape;
  if (!(places[3] == Expr(2)) || !(places[0] == shape[0])) c.fail("a grid [N, H, W, 2]", grid->type.text());
  Value* flat = c.b.transpose(c.b.reshape(x, {shape[0], shape[1], shape[2] * shape[3]}), {0, 2, 1});
  const auto coordinate = [&](std::int64_t i, const Expr& size) {
    Value* g = c.b.reshape(c.b.slice_axis(grid, 3, Expr(i), Expr(1)), {places[0], places[1], places[2]});
    return unnormalized(c, g, size_like(c, g, size), s.corners);
  };
  Value *gx = coordinate(0, shape[3]), *gy = coordinate(1, shape[2]);
  Value *width = size_like(c, gx, shape[3]), *height = size_like(c, gy, shape[2]);
  const auto pixel = [&](Value* row, Value* column) {
    return pixels(c, flat, padded(c, s, row, height), padded(c, s, column, width), shape[2], shape[3]);
  };
  Value* y = nullptr;
  if (s.mode == "nearest") {
    y = pixel(c.b.unary("round", padded(c, s, gy, height)), c.b.unary("round", padded(c, s, gx, width)));
  } else {
    const bool cubic = s.mode == "bicubic";
    if (!cubic) {
      gx = padded(c, s, gx, width);
      gy = padded(c, s, gy, height);
    }
    Value *left = c.b.unary("floor", gx), *top = c.b.unary("floor", gy);
    Value *tx = c.b.sub(gx, left), *ty = c.b.sub(gy, top);
    const auto weights = [&](Value* t) {
      return cubic ? cubic_weights(c, t) : std::vector<Value*>{c.b.add(c.b.unary("neg", t), 1), t};
    };
    const std::vector<Value*> wx = weights(tx), wy = weights(ty);
    const double first = cubic ? -1 : 0;
    for (std::size_t i = 0; i < wy.size(); ++i) {
      for (std::size_t k = 0; k < wx.size(); ++k) {
        Value* p = pixel(c.b.add(top, first + static_cast<double>(i)), c.b.add(left, first + static_cast<double>(k)));
        Value* part = c.b.mul(p, with_channel(c, c.b.mul(wy[i], wx[k])));
        y = y ? c.b.add(y, part) : part;
      }
    }
  }
  return {c.b.transpose(y, {0, 3, 1, 2})};
}

Outputs roi_align(OpContext& c) {
  Value *x = c.input(0), *rois = c.input(1), *batch = c.input(2);
  const std::string mode = c.text("mode", "avg");
  if (mode != "avg" && mode != "max") c.fail("mode avg or max", printable(mode));
  const std::string transformation =
      c.text("coordinate_transformation_mode", c.opset() < 16 ? "output_half_pixel" : "half_pixel");
  const bool half = transformation == "half_pixel";
  const std::int64_t high = c.integer("output_height", 1), wide = c.integer("output_width", 1),
                     samples = c.integer("sampling_ratio", 0);
  const double scale = c.real("spatial_scale", 1.0);
  if (x->type.rank() != 4 || rois->type.rank() != 2 || !(rois->type.shape[1] == Expr(4)))
    c.fail("x[N, C, H, W] and rois[R, 4]", fmt::format("{} and {}", x->type.text(), rois->type.text()));
  if (samples < 1) c.unsupported("a sampling_ratio of at least 1", std::to_string(samples), "a fixed number of samples a bin");
  if (high < 1 || wide < 1) c.fail("a positive output size", fmt::format("{} x {}", high, wide));
  const Shape shape = x->type.shape;
  const Expr count = rois->type.shape[0];
  const auto corner = [&](std::int64_t i) {
    Value* v =
        c.b.mul(c.b.reshape(c.b.slice_axis(rois, 1, Expr(i), Expr(1)), {count, Expr(1), Expr(1), Expr(1), Expr(1)}), scale);
    return half ? c.b.add(v, -0.5) : v;
  };
  // Samples of all bins along one axis: [R, bins, samples] at `at` of five axes [R, high, wide, rows, columns].
  const auto positions = [&](std::int64_t from, std::int64_t to, std::int64_t bins, std::size_t bin_axis) {
    Value *begin = corner(from), *span = c.b.sub(corner(to), begin);
    if (!half) span = c.b.max(span, like(c, span, 1));
    Shape of_bins(5, Expr(1)), of_samples(5, Expr(1));
    of_bins[bin_axis] = bins;
    of_samples[bin_axis + 2] = samples;
    Value* bin = c.b.cast(c.b.iota(of_bins, static_cast<std::int64_t>(bin_axis), DType::i64), x->type.dtype);
    Value* sample = c.b.cast(c.b.iota(of_samples, static_cast<std::int64_t>(bin_axis) + 2, DType::i64), x->type.dtype);
    Value* place = c.b.add(bin, c.b.mul(c.b.add(sample, 0.5), 1.0 / static_cast<double>(samples)));
    return c.b.add(begin, c.b.mul(place, c.b.mul(span, 1.0 / static_cast<double>(bins))));
  };
  const Shape all{count, Expr(high), Expr(wide), Expr(samples), Expr(samples)};
  Value *y = c.b.expand(positions(1, 3, high, 1), all), *xx = c.b.expand(positions(0, 2, wide, 2), all);
  // More than a pixel outside nothing is read; up to there the border's pixels count.
  const auto outside = [&](Value* v, const Expr& size) {
    Value* last = size_like(c, v, size);
    return c.b.call("or", {c.b.call("less", {v, like(c, v, -1)}), c.b.call("greater", {v, last})});
  };
  Value* nothing = c.b.call("or", {outside(y, shape[2]), outside(xx, shape[3])});
  const auto held = [&](Value* v, const Expr& size) {
    return between(c, v, like(c, v, 0), c.b.add(size_like(c, v, size), -1));
  };
  y = held(y, shape[2]);
  xx = held(xx, shape[3]);
  Value *top = c.b.unary("floor", y), *left = c.b.unary("floor", xx);
  Value *ty = c.b.sub(y, top), *tx = c.b.sub(xx, left);
  const auto rest = [&](Value* t) { return c.b.add(c.b.unary("neg", t), 1); };
  // x[batch[r]] as [N * H * W, C]
  Value* flat = c.b.reshape(c.b.transpose(x, {0, 2, 3, 1}), {shape[0] * shape[2] * shape[3], shape[1]});
  Value* image = c.b.mul(c.b.reshape(c.b.cast(batch, DType::i64), {count, Expr(1), Expr(1), Expr(1), Expr(1)}),
                         c.b.exprs({shape[2] * shape[3]}, {}));
  const auto part = [&](Value* row, Value* column, Value* weight) {
    Value* line = c.b.mul(c.b.cast(held(row, shape[2]), DType::i64), c.b.exprs({shape[3]}, {}));
    Value* at = c.b.add(image, c.b.add(line, c.b.cast(held(column, shape[3]), DType::i64)));
    return c.b.mul(c.b.gather(flat, at, 0), with_channel(c, weight));
  };
  Value *bottom = c.b.add(top, 1), *right = c.b.add(left, 1);
  const std::vector<Value*> parts{part(top, left, c.b.mul(rest(ty), rest(tx))), part(top, right, c.b.mul(rest(ty), tx)),
                                  part(bottom, left, c.b.mul(ty, rest(tx))), part(bottom, right, c.b.mul(ty, tx))};
  const bool average = mode == "avg";
  // ONNX takes the largest of the weighted neighbours, not of the samples.
  Value* value = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) value = average ? c.b.add(value, parts[i]) : c.b.max(value, parts[i]);
  value = c.b.where(with_channel(c, nothing), like(c, value, 0), value);
  value = c.b.reduce(average ? "reduce_mean" : "reduce_max", value, {3, 4}, false);
  return {c.b.transpose(value, {0, 3, 1, 2})};
}

constexpr OpRow kRows[] = {
    {"GridSample", 16, 2, 2, grid_sample},
    {"RoiAlign", 10, 3, 3, roi_align},
};

}  // namespace

std::span<const OpRow> image_rows() { return kRows; }

}  // namespace oclc::onnx

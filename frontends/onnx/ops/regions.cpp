// Parts of an image, each of the same number of bins: RoiAlign and MaxRoiPool.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>

#include "frontends/onnx/ops/image.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// Means, or largest elements, of samples between the elements of x[N, C, H, W]: in bins of the regions rois[R, 4] of the images
// batch[R].
class RoiAlign {
 public:
  explicit RoiAlign(OpContext& c) : c_(c), x_(c.input(0)), rois_(c.input(1)), batch_(c.input(2)) {
    const std::string mode = c.text("mode", "avg");
    if (mode != "avg" && mode != "max") c.fail("mode avg or max", printable(mode));
    average_ = mode == "avg";
    const std::string transformation =
        c.text("coordinate_transformation_mode", c.opset() < 16 ? "output_half_pixel" : "half_pixel");
    half_ = transformation == "half_pixel";
    high_ = c.integer("output_height", 1);
    wide_ = c.integer("output_width", 1);
    samples_ = c.integer("sampling_ratio", 0);
    scale_ = c.real("spatial_scale", 1.0);
    if (x_->type.rank() != 4 || rois_->type.rank() != 2 || !(rois_->type.shape[1] == Expr(4)))
      c.fail("x[N, C, H, W] and rois[R, 4]", fmt::format("{} and {}", x_->type.text(), rois_->type.text()));
    if (samples_ < 0) c.fail("a sampling_ratio of 0 or more", std::to_string(samples_));
    if (high_ < 1 || wide_ < 1) c.fail("a positive output size", fmt::format("{} x {}", high_, wide_));
    shape_ = x_->type.shape;
    count_ = rois_->type.shape[0];
  }

  Outputs run() {
    const Samples rows = samples_along(1, 3, high_, 1), columns = samples_along(0, 2, wide_, 2);
    const Shape all{count_, Expr(high_), Expr(wide_), rows.most, columns.most};
    Value *y = c_.b.expand(rows.places, all), *x = c_.b.expand(columns.places, all);
    return {c_.b.transpose(of_bins(at(y, x), rows, columns), {0, 3, 1, 2})};
  }

 private:
  // Along one axis: how many samples a region's bins have, [R, 1, ..], and the samples of all bins, [R, bins, samples] at
  // `bin_axis` of five axes [R, high, wide, rows, columns]. Without a ratio it is one a pixel, and the most of any region's are
  // laid out.
  struct Samples {
    Expr most;
    Value *own, *places, *kept;  // the last null if all are
  };

  Value* corner(std::int64_t i) {
    Builder& b = c_.b;
    Value* v = b.mul(b.reshape(b.slice_axis(rois_, 1, Expr(i), Expr(1)), {count_, Expr(1), Expr(1), Expr(1), Expr(1)}), scale_);
    return half_ ? b.add(v, -0.5) : v;
  }

  Samples samples_along(std::int64_t from, std::int64_t to, std::int64_t bins, std::size_t bin_axis) {
    Builder& b = c_.b;
    Value *begin = corner(from), *span = b.sub(corner(to), begin);
    if (!half_) span = b.max(span, like(c_, span, 1));
    Value* bin_size = b.mul(span, 1.0 / static_cast<double>(bins));
    Samples s{Expr(samples_), like(c_, span, static_cast<double>(samples_)), nullptr, nullptr};
    if (samples_ == 0) {
      s.own = b.max(b.unary("ceil", bin_size), like(c_, span, 0));
      Value* most = b.reduce("reduce_max", b.reshape(s.own, {count_}), {0}, true);
      s.most = count_ == Expr(0) ? Expr(0) : c_.read_sizes(most, {std::nullopt}).at(0);
    }
    Shape of_bins(5, Expr(1)), of_samples(5, Expr(1));
    of_bins[bin_axis] = bins;
    of_samples[bin_axis + 2] = s.most;
    Value* bin = b.cast(b.iota(of_bins, static_cast<std::int64_t>(bin_axis), DType::i64), x_->type.dtype);
    Value* sample = b.cast(b.iota(of_samples, static_cast<std::int64_t>(bin_axis) + 2, DType::i64), x_->type.dtype);
    Value* within = b.add(sample, 0.5);
    within = samples_ > 0 ? b.mul(within, 1.0 / static_cast<double>(samples_)) : b.div(within, s.own);
    s.places = b.add(begin, b.mul(b.add(bin, within), bin_size));
    if (samples_ == 0) s.kept = b.call("less", {sample, s.own});
    return s;
  }

  // More than a pixel outside nothing is read; up to there the border's pixels count.
  Value* outside(Value* v, const Expr& size) {
    Value* last = size_like(c_, v, size);
    return c_.b.call("or", {c_.b.call("less", {v, like(c_, v, -1)}), c_.b.call("greater", {v, last})});
  }

  Value* held(Value* v, const Expr& size) { return between(c_, v, like(c_, v, 0), c_.b.add(size_like(c_, v, size), -1)); }

  // x[batch[r]] at lines y and columns x: a mean of the four neighbours by their distances, or the largest of their parts of
  // it: ONNX takes the largest of the weighted neighbours, not of the samples.
  Value* at(Value* y, Value* x) {
    Builder& b = c_.b;
    Value* nothing = b.call("or", {outside(y, shape_[2]), outside(x, shape_[3])});
    y = held(y, shape_[2]);
    x = held(x, shape_[3]);
    Value *top = b.unary("floor", y), *left = b.unary("floor", x);
    Value *ty = b.sub(y, top), *tx = b.sub(x, left);
    const auto rest = [&](Value* t) { return b.add(b.unary("neg", t), 1); };
    // x[N * H * W, C], of which an image begins at `image`
    Value* flat = b.reshape(b.transpose(x_, {0, 2, 3, 1}), {shape_[0] * shape_[2] * shape_[3], shape_[1]});
    Value* image = b.mul(b.reshape(b.cast(batch_, DType::i64), {count_, Expr(1), Expr(1), Expr(1), Expr(1)}),
                         b.exprs({shape_[2] * shape_[3]}, {}));
    const auto part = [&](Value* row, Value* column, Value* weight) {
      Value* line = b.mul(b.cast(held(row, shape_[2]), DType::i64), b.exprs({shape_[3]}, {}));
      Value* place = b.add(image, b.add(line, b.cast(held(column, shape_[3]), DType::i64)));
      return b.mul(b.gather(flat, place, 0), with_channel(c_, weight));
    };
    Value *bottom = b.add(top, 1), *right = b.add(left, 1);
    const std::vector<Value*> parts{part(top, left, b.mul(rest(ty), rest(tx))), part(top, right, b.mul(rest(ty), tx)),
                                    part(bottom, left, b.mul(ty, rest(tx))), part(bottom, right, b.mul(ty, tx))};
    Value* value = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) value = average_ ? b.add(value, parts[i]) : b.max(value, parts[i]);
    return b.where(with_channel(c_, nothing), like(c_, value, 0), value);
  }

  // What each bin makes of its samples, [R, high, wide, C].
  Value* of_bins(Value* value, const Samples& rows, const Samples& columns) {
    Builder& b = c_.b;
    if (samples_ > 0) return b.reduce(average_ ? "reduce_mean" : "reduce_max", value, {3, 4}, false);
    Value* kept = with_channel(c_, b.call("and", {rows.kept, columns.kept}));
    Value* number = b.reshape(b.mul(rows.own, columns.own), {count_, Expr(1), Expr(1), Expr(1)});
    value = b.reduce(average_ ? "reduce_sum" : "reduce_max", b.where(kept, value, like(c_, value, average_ ? 0 : -INFINITY)),
                     {3, 4}, false);
    if (average_) value = b.div(value, b.max(number, like(c_, number, 1)));
    return b.where(b.call("greater", {number, like(c_, number, 0)}), value, like(c_, value, 0));
  }

  OpContext& c_;
  Value *x_, *rois_, *batch_;
  bool average_ = true, half_ = true;
  std::int64_t high_ = 1, wide_ = 1, samples_ = 0;
  double scale_ = 1;
  Shape shape_;     // of x
  Expr count_ = 0;  // of regions
};

Outputs roi_align(OpContext& c) { return RoiAlign(c).run(); }

// The largest element of each bin of rois[R, (image, x1, y1, x2, y2)], whose corners, scaled, are rounded to whole pixels and
// belong to it; of a bin without pixels 0. First over the columns of each bin, then over its rows.
Outputs max_roi_pool(OpContext& c) {
  Value *x = c.input(0), *rois = c.input(1);
  const Ints sizes = c.integers("pooled_shape");
  const double scale = c.real("spatial_scale", 1.0);
  if (x->type.rank() != 4 || rois->type.rank() != 2 || !(rois->type.shape[1] == Expr(5)))
    c.fail("x[N, C, H, W] and rois[R, 5]", fmt::format("{} and {}", x->type.text(), rois->type.text()));
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1)
    c.fail("two positive numbers as pooled_shape", fmt::format("{}", fmt::join(sizes, ", ")));
  const Shape shape = x->type.shape;
  const Expr count = rois->type.shape[0];
  const DType dtype = x->type.dtype, real = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto column = [&](std::int64_t i) {
    return c.b.cast(c.b.reshape(c.b.slice_axis(rois, 1, Expr(i), Expr(1)), {count, Expr(1), Expr(1)}), real);
  };
  // Halves away from 0, as C's round does.
  const auto pixel = [&](std::int64_t i) {
    Value* v = c.b.mul(column(i), scale);
    Value* whole = c.b.unary("floor", c.b.add(c.b.unary("abs", v), 0.5));
    return c.b.where(c.b.call("less", {v, c.b.scalar(real, 0)}), c.b.unary("neg", whole), whole);
  };
  // [R, bins, pixels]: does the pixel lie in the bin?
  const auto inside = [&](std::int64_t from, std::int64_t to, std::int64_t bins, const Expr& pixels) {
    Value* begin = pixel(from);
    Value* span = c.b.max(c.b.add(c.b.sub(pixel(to), begin), 1), c.b.scalar(real, 1));
    Value* each = c.b.div(span, c.b.scalar(real, static_cast<double>(bins)));
    Value* bin = c.b.cast(c.b.iota({Expr(1), Expr(bins), Expr(1)}, 1, DType::i64), real);
    Value* at = c.b.cast(c.b.iota({Expr(1), Expr(1), pixels}, 2, DType::i64), real);
    Value* first = c.b.add(begin, c.b.unary("floor", c.b.mul(bin, each)));
    Value* last = c.b.add(begin, c.b.unary("ceil", c.b.mul(c.b.add(bin, 1), each)));
    return c.b.call("and", {c.b.call("less_equal", {first, at}), c.b.call("less", {at, last})});
  };
  const Expr high(sizes[0]), wide(sizes[1]);
  Value *rows = inside(2, 4, sizes[0], shape[2]), *columns = inside(1, 3, sizes[1], shape[3]);
  Value* image = c.b.reshape(c.b.cast(column(0), DType::i64), {count});
  Value* lowest = c.b.scalar(dtype, -std::numeric_limits<double>::infinity());
  // [R, C, H, bins, W], then [R, C, bins, H, bins]
  Value* cut = c.b.reshape(c.b.gather(x, image, 0), {count, shape[1], shape[2], Expr(1), shape[3]});
  Value* y = c.b.where(c.b.reshape(columns, {count, Expr(1), Expr(1), wide, shape[3]}), cut, lowest);
  y = c.b.reshape(c.b.reduce("reduce_max", y, {4}, false), {count, shape[1], Expr(1), shape[2], wide});
  y = c.b.where(c.b.reshape(rows, {count, Expr(1), high, shape[2], Expr(1)}), y, lowest);
  y = c.b.reduce("reduce_max", y, {3}, false);
  const auto any = [&](Value* pixels, Shape result) {
    return c.b.reshape(c.b.reduce("reduce_max", pixels, {2}, false), std::move(result));
  };
  Value* some = c.b.call("and", {any(rows, {count, Expr(1), high, Expr(1)}), any(columns, {count, Expr(1), Expr(1), wide})});
  return {c.b.where(some, y, c.b.scalar(dtype, 0))};
}

constexpr OpRow kRegionRows[] = {
    {"MaxRoiPool", 1, 2, 2, max_roi_pool},
    {"RoiAlign", 10, 3, 3, roi_align},
};

}  // namespace

std::span<const OpRow> region_rows() { return kRegionRows; }

}  // namespace oclc::onnx

// Reads between the elements of an image: GridSample and DeformConv.
#include "frontends/onnx/ops/image.h"

#include <fmt/format.h>

#include <span>

#include "frontends/onnx/ops/window.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {

Value* size_like(OpContext& c, Value* x, const Expr& size) { return c.b.cast(c.b.exprs({size}, {}), x->type.dtype); }
Value* like(OpContext& c, Value* x, double v) { return c.b.scalar(x->type.dtype, v); }
Value* between(OpContext& c, Value* x, Value* low, Value* high) { return c.b.max(c.b.min(x, high), low); }

Value* with_channel(OpContext& c, Value* v) {
  Shape shape = v->type.shape;
  shape.emplace_back(1);
  return c.b.reshape(v, std::move(shape));
}

namespace {

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

// The elements [n, .., c] of x[n, product(sizes), c] at positions [n, ..] along each axis, 0 outside.
Value* pixels(OpContext& c, Value* flat, const std::vector<Value*>& positions, const Shape& sizes) {
  Value *held = nullptr, *at = nullptr;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Value *v = positions[i], *zero = like(c, v, 0), *last = c.b.add(size_like(c, v, sizes[i]), -1);
    Value* inside = c.b.call("and", {c.b.call("greater_equal", {v, zero}), c.b.call("less_equal", {v, last})});
    held = held ? c.b.call("and", {held, inside}) : inside;
    Value* own = c.b.cast(between(c, v, zero, last), DType::i64);
    at = at ? c.b.add(c.b.mul(at, c.b.exprs({sizes[i]}, {})), own) : own;
  }
  Shape tuple = at->type.shape, masked = at->type.shape;
  tuple.emplace_back(1);
  Value* taken = c.b.gather_nd(flat, c.b.reshape(at, tuple), 1);
  masked.emplace_back(1);
  return c.b.where(c.b.reshape(held, masked), taken, like(c, flat, 0));
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

// The sum over all combinations of one neighbour along each axis: weights[axis][k] of the pixel at first[axis] + k.
template <class Pixel>
Value* weighted(OpContext& c, const std::vector<Value*>& first, const std::vector<std::vector<Value*>>& weights,
                Pixel&& pixel) {
  Value* sum = nullptr;
  std::vector<std::size_t> k(first.size(), 0);
  for (bool more = true; more;) {
    std::vector<Value*> at;
    Value* weight = nullptr;
    for (std::size_t i = 0; i < first.size(); ++i) {
      at.push_back(c.b.add(first[i], static_cast<double>(k[i])));
      weight = weight ? c.b.mul(weight, weights[i][k[i]]) : weights[i][k[i]];
    }
    Value* part = c.b.mul(pixel(at), with_channel(c, weight));
    sum = sum ? c.b.add(sum, part) : part;
    more = false;
    for (std::size_t i = first.size(); i-- > 0 && !more;) {
      more = ++k[i] < weights[i].size();
      if (!more) k[i] = 0;
    }
  }
  return sum;
}

// Between the neighbours of positions along each axis, by straight lines.
template <class Pixel>
Value* interpolated(OpContext& c, const std::vector<Value*>& positions, Pixel&& pixel) {
  std::vector<Value*> first;
  std::vector<std::vector<Value*>> weights;
  for (Value* position : positions) {
    first.push_back(c.b.unary("floor", position));
    Value* t = c.b.sub(position, first.back());
    weights.push_back({c.b.add(c.b.unary("neg", t), 1), t});
  }
  return weighted(c, first, weights, pixel);
}

// x[n, c, sizes..] as [n, product(sizes), c].
Value* rows_of_channels(OpContext& c, Value* x) {
  const Shape& shape = x->type.shape;
  const Expr places = product(std::span(shape).subspan(2));
  return c.b.transpose(c.b.reshape(x, {shape[0], shape[1], places}), {0, 2, 1});
}

Outputs grid_sample(OpContext& c) {
  Value *x = c.input(0), *grid = c.input(1);
  Sampler s{c.text("mode", c.opset() < 20 ? "bilinear" : "linear"), c.text("padding_mode", "zeros"), c.flag("align_corners")};
  if (s.mode == "bilinear") s.mode = "linear";
  if (s.mode == "bicubic") s.mode = "cubic";
  if (s.mode != "linear" && s.mode != "nearest" && s.mode != "cubic")
    c.fail("mode linear, nearest or cubic", printable(s.mode));
  if (s.padding != "zeros" && s.padding != "border" && s.padding != "reflection")
    c.fail("padding_mode zeros, border or reflection", printable(s.padding));
  const std::size_t rank = x->type.rank();
  if (rank < 3 || grid->type.rank() != rank) c.fail("an input and a grid of one rank from 3 on", grid->type.text());
  if (s.mode == "cubic" && rank != 4) c.unsupported("inputs of rank 4 for mode cubic", x->type.text());
  const std::size_t axes = rank - 2;
  const Shape shape = x->type.shape, places = grid->type.shape, sizes(shape.begin() + 2, shape.end());
  if (!(places.back() == Expr(static_cast<std::int64_t>(axes))) || !(places[0] == shape[0]))
    c.fail(fmt::format("a grid [{}, .., {}]", shape[0].text(), axes), grid->type.text());
  Value* flat = rows_of_channels(c, x);
  // The grid names the last axis first.
  std::vector<Value*> at, size;
  for (std::size_t i = 0; i < axes; ++i) {
    Value* g =
        c.b.slice_axis(grid, static_cast<std::int64_t>(rank) - 1, Expr(static_cast<std::int64_t>(axes - 1 - i)), Expr(1));
    g = c.b.reshape(g, Shape(places.begin(), places.end() - 1));
    size.push_back(size_like(c, g, sizes[i]));
    at.push_back(unnormalized(c, g, size[i], s.corners));
  }
  const auto pixel = [&](const std::vector<Value*>& positions) {
    std::vector<Value*> held;
    for (std::size_t i = 0; i < axes; ++i) held.push_back(padded(c, s, positions[i], size[i]));
    return pixels(c, flat, held, sizes);
  };
  Value* y = nullptr;
  if (s.mode == "cubic") {
    std::vector<Value*> first;
    std::vector<std::vector<Value*>> weights;
    for (Value* position : at) {
      Value* below = c.b.unary("floor", position);
      first.push_back(c.b.add(below, -1));
      weights.push_back(cubic_weights(c, c.b.sub(position, below)));
    }
    y = weighted(c, first, weights, pixel);
  } else {
    for (std::size_t i = 0; i < axes; ++i) {
      at[i] = padded(c, s, at[i], size[i]);
      if (s.mode == "nearest") at[i] = c.b.unary("round", at[i]);
    }
    y = s.mode == "nearest" ? pixel(at) : interpolated(c, at, pixel);
  }
  Ints perm{0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t i = 1; i <= axes; ++i) perm.push_back(static_cast<std::int64_t>(i));
  return {c.b.transpose(y, std::move(perm))};
}

// A convolution whose taps are moved by `offset`[N, G * taps * axes, out..] and weighted by a mask [N, G * taps, out..]: the
// moved elements as columns, times the weights as a matrix.
Outputs deformable_convolution(OpContext& c) {
  Value *x = c.input(0), *w = c.input(1), *offset = c.input(2);
  const std::size_t axes = spatial_axes(c);
  const Window window = window_of_weights(c, w);
  const std::int64_t group = c.integer("group", 1), offset_group = c.integer("offset_group", 1);
  const Shape sx = x->type.shape, sw = w->type.shape, so = offset->type.shape, sizes(sx.begin() + 2, sx.end());
  std::int64_t taps = 1;
  for (const std::int64_t k : window.kernel) taps *= k;
  Shape out, wanted{sx[0], Expr(offset_group * taps * static_cast<std::int64_t>(axes))};
  for (std::size_t i = 0; i < axes; ++i) {
    const Expr room =
        sizes[i] + Expr(window.pads[i] + window.pads[i + axes] - window.dilations[i] * (window.kernel[i] - 1) - 1);
    out.push_back(floor_div(room, Expr(window.strides[i])) + 1);
  }
  wanted.insert(wanted.end(), out.begin(), out.end());
  if (group < 1 || offset_group < 1 || !(sw[1] * Expr(group) == sx[1]) ||
      !(floor_div(sw[0], Expr(group)) * Expr(group) == sw[0]) ||
      !(floor_div(sx[1], Expr(offset_group)) * Expr(offset_group) == sx[1]))
    c.fail("channels and features that the groups divide",
           fmt::format("{} and {}, group {}, offset_group {}", text_of(sx), text_of(sw), group, offset_group));
  if (!(so == wanted)) c.fail("offsets " + text_of(wanted), text_of(so));
  const Expr images = sx[0] * Expr(offset_group), each = floor_div(sx[1], Expr(offset_group));
  Shape apart{images, each}, moved{images, Expr(taps), Expr(static_cast<std::int64_t>(axes))}, placed{images, Expr(taps)};
  apart.insert(apart.end(), sizes.begin(), sizes.end());
  moved.insert(moved.end(), out.begin(), out.end());
  placed.insert(placed.end(), out.begin(), out.end());
  Value *flat = rows_of_channels(c, c.b.reshape(x, apart)), *moves = c.b.reshape(offset, moved);
  std::vector<Value*> at;
  std::int64_t inner = taps;
  for (std::size_t i = 0; i < axes; ++i) {
    inner /= window.kernel[i];
    HostTensor tap(x->type.dtype, {taps});
    for (std::int64_t k = 0; k < taps; ++k)
      tap.set(k, static_cast<double>(k / inner % window.kernel[i] * window.dilations[i] - window.pads[i]));
    Shape line(axes, Expr(1)), column{Expr(taps)};
    line[i] = out[i];
    column.resize(axes + 1, Expr(1));
    Value* step = c.b.iota(line, static_cast<std::int64_t>(i), DType::i64, 0, Expr(window.strides[i]));
    Value* place = c.b.add(c.b.reshape(c.b.constant(std::move(tap)), column), c.b.cast(step, x->type.dtype));
    Value* own = c.b.reshape(c.b.slice_axis(moves, 2, Expr(static_cast<std::int64_t>(i)), Expr(1)), placed);
    at.push_back(c.b.add(own, place));
  }
  Value* columns = interpolated(c, at, [&](const std::vector<Value*>& p) { return pixels(c, flat, p, sizes); });
  if (Value* mask = c.optional_input(4)) columns = c.b.mul(columns, with_channel(c, c.b.reshape(mask, placed)));
  // [images, taps, out.., channels] -> [N, group, channels * taps, out]
  const Expr places = product(out), terms = sw[1] * Expr(taps), features = floor_div(sw[0], Expr(group));
  columns = c.b.transpose(c.b.reshape(columns, {images, Expr(taps), places, each}), {0, 3, 1, 2});
  columns = c.b.reshape(columns, {sx[0], Expr(group), terms, places});
  Value* y = c.b.matmul(c.b.reshape(w, {Expr(group), features, terms}), columns);
  Shape result{sx[0], sw[0]};
  result.insert(result.end(), out.begin(), out.end());
  y = c.b.reshape(y, std::move(result));
  Value* bias = c.optional_input(3);
  if (!bias) return {y};
  Shape column{sw[0]};
  column.resize(axes + 1, Expr(1));
  return {c.b.add(y, c.b.reshape(bias, std::move(column)))};
}

constexpr OpRow kImageRows[] = {
    {"DeformConv", 19, 3, 5, deformable_convolution},
    {"GridSample", 16, 2, 2, grid_sample},
    {"com.microsoft.GridSample", 1, 2, 2, grid_sample},
};

}  // namespace

std::span<const OpRow> image_rows() { return kImageRows; }

}  // namespace oclc::onnx

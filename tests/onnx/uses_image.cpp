// Reads between the elements of images: Resize (18, 19), grids (20, 22), deformed windows (19, 22), regions (22).
#include <algorithm>
#include <cmath>

#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

HostTensor ramp(Dims shape) {
  HostTensor x(DType::f32, std::move(shape));
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i + 1));
  return x;
}

// The element at `index` of the plane's axes, 0 outside.
double at_or_zero(const HostTensor& x, const Dims& index) {
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0 || index[i] >= x.shape()[i]) return 0;
  }
  return x.at(flat(index, x.shape()));
}

// Between the pixels around (y, x) of plane [n, c]; what lies outside counts as 0.
double bilinear(const HostTensor& t, std::int64_t n, std::int64_t c, double y, double x) {
  const double top = std::floor(y), left = std::floor(x);
  double sum = 0;
  for (const int dy : {0, 1}) {
    for (const int dx : {0, 1}) {
      const double weight = (dy ? y - top : 1 - (y - top)) * (dx ? x - left : 1 - (x - left));
      sum += weight * at_or_zero(t, {n, c, static_cast<std::int64_t>(top) + dy, static_cast<std::int64_t>(left) + dx});
    }
  }
  return sum;
}

void resizes(Sheet& s) {
  const HostTensor x = ramp({1, 1, 4, 4});
  const auto resized = [&](const HostTensor& given, const std::vector<float>& scales, const Dims& sizes,
                           const std::string& mode, bool awkward) -> NodeProto& {
    std::vector<double> factors(scales.begin(), scales.end());
    const std::string scale =
        scales.empty() ? "" : s.known(listed(DType::f32, {static_cast<std::int64_t>(scales.size())}, factors));
    std::vector<std::string> inputs{s.input(given), "", scale};
    if (!sizes.empty()) inputs.push_back(s.known_ints(sizes));
    NodeProto& node = s.use("Resize", inputs, awkward);
    set_text(node, "mode", mode);
    return node;
  };
  if (s.opset == 18) {
    // The specification's examples of smaller images with a wider filter.
    set_int(resized(x, {1, 1, 0.6F, 0.6F}, {}, "linear", false), "antialias", 1);
    s.gives(DType::f32, {1, 1, 2, 2}, of({2.875, 4.5, 9.375, 11}));
    set_int(resized(x, {1, 1, 0.6F, 0.6F}, {}, "cubic", false), "antialias", 1);
    s.gives(DType::f32, {1, 1, 2, 2}, of({2.5180721, 4.2858863, 9.589329, 11.357142}));
    const HostTensor two = ramp({2, 2});
    NodeProto& kept = resized(two, {}, {7, 8}, "nearest", true);
    set_text(kept, "keep_aspect_ratio_policy", "not_larger");
    set_list(kept, "axes", {0, 1});
    s.gives(DType::f32, {7, 7}, [](std::int64_t i) { return 1.0 + (i % 7 > 3 ? 1 : 0) + (i / 7 > 3 ? 2 : 0); });  // halves down
    return;
  }
  // 19: of an output whose exact size is no whole number the pixels lie around the middle.
  for (const std::int64_t size : {4, 7, 1}) {
    const HostTensor line = ramp({1, 1, size});
    const double scale = 0.6;
    const auto out = static_cast<std::int64_t>(std::floor(scale * static_cast<double>(size)));
    if (out == 0) continue;
    NodeProto& node = resized(line, {1, 1, 0.6F}, {}, "linear", false);
    set_text(node, "coordinate_transformation_mode", "half_pixel_symmetric");
    s.gives(DType::f32, {1, 1, out}, [=](std::int64_t i) {
      const double adjustment = static_cast<double>(out) / (static_cast<double>(size) * static_cast<double>(0.6F));
      const double centre = static_cast<double>(size) / 2, offset = centre * (1 - adjustment);
      const double at = std::clamp(offset + (static_cast<double>(i) + 0.5) / static_cast<double>(0.6F) - 0.5, 0.0,
                                   static_cast<double>(size - 1));
      return 1 + at;
    });
  }
  NodeProto& wide = resized(ramp({1, 3}), {}, {1, 6}, "nearest", true);
  set_text(wide, "coordinate_transformation_mode", "asymmetric");
  set_text(wide, "nearest_mode", "floor");
  s.gives(DType::f32, {1, 6}, of({1, 1, 2, 2, 3, 3}));
}

void grids(Sheet& s) {
  struct Case {
    Dims size;
    bool corners;
  };
  for (const Case& c :
       {Case{{2, 1, 3, 4}, false}, Case{{1, 2, 2, 5}, true}, Case{{1, 1, 2, 3, 2}, true}, Case{{2, 1, 3, 1, 2}, false}}) {
    const bool space = c.size.size() == 5;
    const std::int64_t axes = space ? 3 : 2;
    const HostTensor theta = noise(DType::f32, {c.size[0], axes, axes + 1}, 1);
    set_int(s.use("AffineGrid", {s.input(theta), s.known_ints(c.size)}, c.size[3] == 1), "align_corners", c.corners);
    Dims shape{c.size[0]};
    shape.insert(shape.end(), c.size.begin() + 2, c.size.end());
    shape.push_back(axes);
    s.gives(DType::f32, shape, [=](std::int64_t i) {
      const Dims at = unflat(i, shape);
      double sum = theta.at((at[0] * axes + at.back()) * (axes + 1) + axes);
      for (std::int64_t k = 0; k < axes; ++k) {  // x belongs to the last axis
        const auto axis = static_cast<std::size_t>(axes - k);
        const auto n = static_cast<double>(shape[axis]), p = static_cast<double>(at[axis]);
        const double place = c.corners ? (n > 1 ? -1 + 2 * p / (n - 1) : -1) : (2 * p + 1) / n - 1;
        sum += theta.at((at[0] * axes + at.back()) * (axes + 1) + k) * place;
      }
      return sum;
    });
  }
}

void samples(Sheet& s) {
  struct Case {
    Dims x, grid;
    const char* mode;
    bool corners;
  };
  for (const Case& c : {Case{{2, 3, 5, 4}, {2, 3, 2, 2}, "linear", false}, Case{{1, 2, 4, 4}, {1, 2, 5, 2}, "nearest", true},
                        Case{{1, 1, 1, 6}, {1, 1, 3, 2}, "linear", true}}) {
    const HostTensor x = noise(DType::f32, c.x, 1), grid = noise(DType::f32, c.grid, 2, 1.2);
    NodeProto& node = s.use("GridSample", {s.input(x), s.input(grid)}, c.x[2] == 1);
    set_text(node, "mode", c.mode);
    set_int(node, "align_corners", c.corners);
    const Dims shape{c.x[0], c.x[1], c.grid[1], c.grid[2]};
    const bool nearest = std::string(c.mode) == "nearest";
    s.gives(DType::f32, shape, [=](std::int64_t i) {
      const Dims at = unflat(i, shape);
      const auto place = [&](std::int64_t k, std::int64_t size) {
        const double v = grid.at(flat({at[0], at[2], at[3], k}, c.grid)), n = static_cast<double>(size);
        return c.corners ? (v + 1) / 2 * (n - 1) : ((v + 1) * n - 1) / 2;
      };
      const double px = place(0, c.x[3]), py = place(1, c.x[2]);
      if (nearest)
        return at_or_zero(
            x, {at[0], at[1], static_cast<std::int64_t>(std::nearbyint(py)), static_cast<std::int64_t>(std::nearbyint(px))});
      return bilinear(x, at[0], at[1], py, px);
    });
  }
  // In space.
  const HostTensor cube = ramp({1, 1, 2, 2, 2}), middle = listed(DType::f32, {1, 1, 1, 2, 3}, {0, 0, 0, 1, 1, 1});
  set_int(s.use("GridSample", {s.input(cube), s.input(middle)}, true), "align_corners", 1);
  s.gives(DType::f32, {1, 1, 1, 1, 2}, of({4.5, 8}));
}

void deformed(Sheet& s) {
  struct Case {
    Dims x;
    std::int64_t features, kernel, stride, pad;
    bool masked;
  };
  for (const Case& c :
       {Case{{1, 2, 5, 4}, 3, 2, 1, 0, false}, Case{{2, 1, 4, 4}, 2, 3, 2, 1, true}, Case{{1, 3, 1, 5}, 1, 1, 1, 0, true}}) {
    const std::int64_t taps = c.kernel * c.kernel, oh = (c.x[2] + 2 * c.pad - c.kernel) / c.stride + 1,
                       ow = (c.x[3] + 2 * c.pad - c.kernel) / c.stride + 1;
    const HostTensor x = noise(DType::f32, c.x, 1), w = noise(DType::f32, {c.features, c.x[1], c.kernel, c.kernel}, 2),
                     offset = noise(DType::f32, {c.x[0], 2 * taps, oh, ow}, 3), bias = noise(DType::f32, {c.features}, 4),
                     mask = noise(DType::f32, {c.x[0], taps, oh, ow}, 5);
    std::vector<std::string> inputs{s.input(x), s.input(w), s.input(offset), s.input(bias)};
    if (c.masked) inputs.push_back(s.input(mask));
    NodeProto& node = s.use("DeformConv", inputs, c.x[2] == 1);
    set_list(node, "strides", {c.stride, c.stride});
    set_list(node, "pads", {c.pad, c.pad, c.pad, c.pad});
    const Dims shape{c.x[0], c.features, oh, ow};
    s.gives(DType::f32, shape, [=](std::int64_t i) {
      const Dims at = unflat(i, shape);
      double sum = bias.at(at[1]);
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const double y = static_cast<double>(at[2] * c.stride - c.pad + tap / c.kernel) +
                         offset.at(flat({at[0], 2 * tap, at[2], at[3]}, offset.shape()));
        const double xx = static_cast<double>(at[3] * c.stride - c.pad + tap % c.kernel) +
                          offset.at(flat({at[0], 2 * tap + 1, at[2], at[3]}, offset.shape()));
        const double share = c.masked ? mask.at(flat({at[0], tap, at[2], at[3]}, mask.shape())) : 1;
        for (std::int64_t ch = 0; ch < c.x[1]; ++ch)
          sum += share * w.at((at[1] * c.x[1] + ch) * taps + tap) * bilinear(x, at[0], ch, y, xx);
      }
      return sum;
    });
  }
}

void regions(Sheet& s) {
  struct Case {
    Dims x;
    std::int64_t high, wide;
    double scale;
  };
  for (const Case& c : {Case{{2, 2, 6, 7}, 2, 3, 1}, Case{{2, 1, 5, 5}, 3, 2, 0.5}, Case{{2, 3, 1, 4}, 1, 2, 1}}) {
    const HostTensor x = noise(DType::f32, c.x, 1);
    // Image and corners; the last box lies outside.
    const HostTensor boxes = listed(DType::f32, {3, 5}, {0, 1, 0, 5, 4, 1, 0.4, 1.6, 3.5, 9, 1, 20, 20, 24, 22});
    NodeProto& node = s.use("MaxRoiPool", {s.input(x), s.input(boxes)}, c.x[2] == 1);
    set_list(node, "pooled_shape", {c.high, c.wide});
    set_float(node, "spatial_scale", static_cast<float>(c.scale));
    const Dims shape{3, c.x[1], c.high, c.wide};
    s.gives(DType::f32, shape, [=](std::int64_t i) {
      const Dims at = unflat(i, shape);
      const auto corner = [&](std::int64_t k) { return std::round(boxes.at(at[0] * 5 + k) * c.scale); };
      const auto bin = [&](std::int64_t from, std::int64_t to, std::int64_t bins, std::int64_t k, std::int64_t size) {
        const double each = std::max(corner(to) - corner(from) + 1, 1.0) / static_cast<double>(bins);
        const double first = corner(from) + std::floor(static_cast<double>(k) * each + 1e-9),
                     last = corner(from) + std::ceil(static_cast<double>(k + 1) * each - 1e-9);
        return std::pair(static_cast<std::int64_t>(std::clamp(first, 0.0, static_cast<double>(size))),
                         static_cast<std::int64_t>(std::clamp(last, 0.0, static_cast<double>(size))));
      };
      const auto [top, bottom] = bin(2, 4, c.high, at[2], c.x[2]);
      const auto [left, right] = bin(1, 3, c.wide, at[3], c.x[3]);
      double best = top < bottom && left < right ? -INFINITY : 0;
      for (std::int64_t y = top; y < bottom; ++y) {
        for (std::int64_t xx = left; xx < right; ++xx)
          best = std::max(best, x.at(flat({static_cast<std::int64_t>(boxes.at(at[0] * 5)), at[1], y, xx}, c.x)));
      }
      return best;
    });
    const HostTensor areas = listed(DType::f32, {2, 4}, {0.5, 0, 3, 2, 1, 0.25, 2.5, 0.75}),
                     images = listed(DType::i64, {2}, {1, 0});
    NodeProto& aligned = s.use("RoiAlign", {s.input(x), s.input(areas), s.input(images)}, c.x[2] == 1);
    set_int(aligned, "output_height", c.high);
    set_int(aligned, "output_width", c.wide);
    set_int(aligned, "sampling_ratio", 2);
    set_float(aligned, "spatial_scale", static_cast<float>(c.scale));
    const Dims cells{2, c.x[1], c.high, c.wide};
    s.gives(DType::f32, cells, [=](std::int64_t i) {
      const Dims at = unflat(i, cells);
      const auto corner = [&](std::int64_t k) { return areas.at(at[0] * 4 + k) * c.scale - 0.5; };
      const auto place = [&](std::int64_t from, std::int64_t cell, std::int64_t count, int sample, std::int64_t size) {
        const double span = (corner(from + 2) - corner(from)) / static_cast<double>(count);
        const double v = corner(from) + (static_cast<double>(cell) + (sample + 0.5) / 2) * span;
        return std::clamp(v, 0.0, static_cast<double>(size - 1));  // the samples here lie less than a pixel outside
      };
      double sum = 0;
      for (const int a : {0, 1}) {
        for (const int b : {0, 1})
          sum +=
              bilinear(x, images.int_at(at[0]), at[1], place(1, at[2], c.high, a, c.x[2]), place(0, at[3], c.wide, b, c.x[3])) /
              4;
      }
      return sum;
    });
  }
}

}  // namespace

void image_uses(Sheet& s) {
  if (s.opset == 18 || s.opset == 19) resizes(s);
  if (s.opset == 19 || s.opset == 22) deformed(s);
  if (s.opset == 20) grids(s);
  if (s.opset == 20 || s.opset == 22) samples(s);
  if (s.opset == 22) regions(s);
}

}  // namespace oclc::test

#include "frontends/onnx/resize_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/support/integer_of.h"

namespace oclc::onnx {
namespace {

// Places outside of the axis read its ends, however far.
constexpr double kFarthest = 0x1p30;

std::int64_t nearest_index(const ResizeMethod& m, double x) {
  const double low = std::floor(x);
  if (m.nearest == "floor") return integer_of(low);
  if (m.nearest == "ceil") return integer_of(std::ceil(x));
  if (m.nearest == "round_prefer_floor") return integer_of(x - low <= 0.5 ? low : low + 1);
  return integer_of(x - low < 0.5 ? low : low + 1);
}

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

}  // namespace

double source_position(const ResizeMethod& m, const ResizeAxis& a, std::int64_t i) {
  const auto x = static_cast<double>(i), in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  if (m.coordinates == "align_corners") return a.out == 1 ? 0 : x * (in - 1) / (a.span - 1);
  if (m.coordinates == "asymmetric") return x / a.scale;
  if (m.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (m.coordinates == "pytorch_half_pixel" && a.out <= 1) return 0;
  if (m.coordinates == "half_pixel_symmetric") {
    const double adjustment = out / (a.scale * in);
    return in / 2 * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  if (m.coordinates == "tf_crop_and_resize") {
    if (a.out == 1) return 0.5 * (a.roi_begin + a.roi_end) * (in - 1);
    return a.roi_begin * (in - 1) + x * (a.roi_end - a.roi_begin) * (in - 1) / (out - 1);
  }
  return (x + 0.5) / a.scale - 0.5;
}

ResizeTaps taps_of(OpContext& c, const ResizeMethod& m, const ResizeAxis& a) {
  const auto count = static_cast<std::size_t>(a.out);
  ResizeTaps taps;
  const auto clamped = [&](std::int64_t at) { return std::clamp<std::int64_t>(at, 0, a.in - 1); };
  if (m.mode == "nearest") {
    taps.index.assign(1, std::vector<std::int64_t>(count));
    taps.weight.assign(1, std::vector<double>(count, 1));
    for (std::size_t i = 0; i < count; ++i)
      taps.index[0][i] = clamped(nearest_index(m, source_position(m, a, static_cast<std::int64_t>(i))));
    return taps;
  }
  // Antialiasing widens the kernel by the factor that the axis shrinks.
  const double narrow = m.antialias ? std::min(a.scale, 1.0) : 1.0, reach = (m.mode == "linear" ? 1 : 2) / narrow;
  if (2 * std::ceil(reach) * static_cast<double>(std::max<std::int64_t>(a.out, 1)) > static_cast<double>(kMostResizeWeights))
    c.unsupported(fmt::format("at most {} weights along an axis", kMostResizeWeights),
                  fmt::format("{} sums of {} elements", a.out, 2 * std::ceil(reach)));
  const auto width = static_cast<std::int64_t>(std::ceil(reach)) * 2;
  taps.index.assign(static_cast<std::size_t>(width), std::vector<std::int64_t>(count, 0));
  taps.weight.assign(static_cast<std::size_t>(width), std::vector<double>(count, 0));
  for (std::size_t i = 0; i < count; ++i) {
    const double x = std::clamp(source_position(m, a, static_cast<std::int64_t>(i)), -kFarthest, kFarthest);
    const auto first = static_cast<std::int64_t>(std::floor(x)) - width / 2 + 1;
    double sum = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      const std::int64_t at = first + k;
      const double distance = (x - static_cast<double>(at)) * narrow;
      double w = m.mode == "linear" ? triangle(distance) : cubic(distance, m.cubic);
      if (m.exclude_outside && at != clamped(at)) w = 0;
      taps.index[static_cast<std::size_t>(k)][i] = clamped(at);
      taps.weight[static_cast<std::size_t>(k)][i] = w;
      sum += w;
    }
    if (m.exclude_outside || m.antialias) {
      for (auto& w : taps.weight) w[i] = sum == 0 ? 0 : w[i] / sum;
    }
  }
  return taps;
}

HostTensor shares_of(OpContext& c, const ResizeTaps& taps, const ResizeAxis& a, DType dtype) {
  if (a.in > kMostResizeWeights / std::max<std::int64_t>(a.out, 1))
    c.unsupported(fmt::format("at most {} weights along an axis", kMostResizeWeights), fmt::format("{} x {}", a.out, a.in));
  HostTensor shares(dtype, {a.out, a.in});
  for (std::int64_t i = 0; i < a.out; ++i) {
    std::map<std::int64_t, double> sums;  // elements that stand for others outside come several times
    for (std::size_t k = 0; k < taps.index.size(); ++k)
      sums[taps.index[k][static_cast<std::size_t>(i)]] += taps.weight[k][static_cast<std::size_t>(i)];
    for (const auto& [at, sum] : sums) shares.set(i * a.in + at, sum);
  }
  return shares;
}

}  // namespace oclc::onnx

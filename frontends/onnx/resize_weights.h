// Which elements of an axis a Resize adds up, and with which weights.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "frontends/onnx/table.h"

namespace oclc::onnx {

// Weights along an axis at most.
inline constexpr std::int64_t kMostResizeWeights = 1 << 22;

struct ResizeMethod {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic = -0.75, outside = 0;
  bool exclude_outside = false, antialias = false;
};

struct ResizeAxis {
  std::size_t axis = 0;
  std::int64_t in = 1, out = 1;
  double scale = 1, roi_begin = 0, roi_end = 1;
  double span = 1;  // the new size that align_corners goes by
};

// taps[k][i]: the k-th element that output i reads, and its weight.
struct ResizeTaps {
  std::vector<std::vector<std::int64_t>> index;
  std::vector<std::vector<double>> weight;
};

// Where output i lies on the axis that is read.
double source_position(const ResizeMethod& m, const ResizeAxis& a, std::int64_t i);
// Refuses more weights than kMostResizeWeights.
ResizeTaps taps_of(OpContext& c, const ResizeMethod& m, const ResizeAxis& a);
// The matrix [out, in] of these weights. Refuses as many.
HostTensor shares_of(OpContext& c, const ResizeTaps& taps, const ResizeAxis& a, DType dtype);

}  // namespace oclc::onnx

// The image that a two-dimensional convolution reads, in coordinates of the padded image.
#pragma once
#include <optional>

#include "compiler/codegen/contraction_view.h"

namespace oclc {

// One dimension of the image: a position is output * stride + tap * dilation.
struct ImageAxis {
  std::int64_t step = 0;  // elements of memory between neighbouring positions
  std::int64_t stride = 1, dilation = 1;
  std::int64_t outputs = 1, taps = 1;
  std::int64_t first = 0, last = 0;  // positions outside are zeros
};

// Element (image, channel, y, x) lies at origin + image * per_image + channel * per_channel + y * y.step + x * x.step.
struct ConvolutionImage {
  Expr origin, per_image;
  std::int64_t per_channel = 1;
  ImageAxis y, x;
};

// Nothing for what is no ungrouped convolution in two dimensions over an image of `stored` with zeros around it, of known size.
std::optional<ConvolutionImage> convolution_image(const ContractionView& view, DType stored = DType::f32);

}  // namespace oclc

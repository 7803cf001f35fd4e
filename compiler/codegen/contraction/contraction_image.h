// The image that a two-dimensional convolution reads, in coordinates of the padded image.
#pragma once
#include <optional>

#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

// One dimension of the image: a position is output * stride + tap * dilation.
struct ImageAxis {
  std::int64_t step = 0;  // elements of memory between neighbouring positions
  std::int64_t stride = 1, dilation = 1;
  std::int64_t outputs = 1, taps = 1;
  std::int64_t first = 0, last = 0;  // positions outside are zeros
};

// What an index and its guards say of the axes of results and taps in one dimension; nothing where it is no window of known
// size.
std::optional<ImageAxis> image_axis(const Expr& index, const Axis& output, const Axis& tap);
// Narrows `first` and `last` by a guard unit * position + constant >= 0; false if it is none.
bool narrow(ImageAxis& axis, const Expr& guard, const Axis& output, const Axis& tap);

// Element (image, channel, y, x) lies at origin + image * per_image + channel * per_channel + y * y.step + x * x.step.
struct ConvolutionImage {
  Expr origin, per_image;
  std::int64_t per_channel = 1;
  ImageAxis y, x;
};

// Nothing for what is no ungrouped convolution in two dimensions over an image of `stored` with zeros around it, of known size.
std::optional<ConvolutionImage> convolution_image(const ContractionView& view, DType stored = DType::f32);

}  // namespace oclc

// The image that a two-dimensional convolution reads, in coordinates of the padded image.
#pragma once
#include <optional>

#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/contraction/problem.h"

namespace oclc {

// What an index and its guards say of the axes of results and taps in one dimension; nothing where it is no window of known
// size.
std::optional<ImageAxis> image_axis(const Expr& index, const Axis& output, const Axis& tap);
// Narrows `first` and `last` by a guard unit * position + constant >= 0; false if it is none.
bool narrow(ImageAxis& axis, const Expr& guard, const Axis& output, const Axis& tap);

// Element (image, channel, y, x) lies at origin + image * per_image + channel * per_channel + y * y.step + x * x.step.
struct ConvolutionImage : Window {
  Expr origin, per_image;
};

// Nothing for what is no ungrouped convolution in two dimensions over an image of `stored` with zeros around it, of known size.
std::optional<ConvolutionImage> convolution_image(const ContractionView& view, DType stored = DType::f32);

}  // namespace oclc

#include "compiler/codegen/contraction/contraction_image.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"

namespace oclc {
namespace {

Substitution at_zero(const Axis& output, const Axis& tap) { return {{output.name, Expr(0)}, {tap.name, Expr(0)}}; }

class ImageReader {
 public:
  ImageReader(const ContractionView& view, DType stored) : view_(view), a_(view.a()), stored_(stored) {}

  std::optional<ConvolutionImage> run() {
    const Contraction& roles = view_.roles();
    if (roles.m.size() != 3 || roles.k.size() != 3 || !roles.batch.empty() || !is_plain_load(a_)) return std::nullopt;
    if (view_.stored_type(a_) != stored_ || a_.number != 0) return std::nullopt;
    const auto per_image = a_.index.coefficient(view_.axis(roles.m[0]).name);
    const auto per_channel = constant_stride(a_.index, view_.inner_axis().name);
    if (!per_image || !per_channel || !read_steps(0, image_.y) || !read_steps(1, image_.x)) return std::nullopt;
    image_.per_image = *per_image;
    image_.per_channel = *per_channel;
    for (const Expr& e : a_.guard) {
      if (!read_bound(0, e, image_.y) && !read_bound(1, e, image_.x)) return std::nullopt;
    }
    image_.images = typical_extent(view_.axis(roles.m[0]).extent);
    image_.origin = a_.index.substitute(zero());
    return image_;
  }

 private:
  const Axis& output_axis(int i) const { return view_.axis(view_.roles().m[static_cast<std::size_t>(i) + 1]); }
  const Axis& tap_axis(int i) const { return view_.reduction(view_.roles().k[static_cast<std::size_t>(i)]); }

  bool read_steps(int i, ImageAxis& axis) const {
    const auto found = image_axis(a_.index, output_axis(i), tap_axis(i));
    if (found) axis = *found;
    return found.has_value();
  }

  Substitution zero() const {
    Substitution by;
    for (const Axis& axis : view_.kernel().axes) by[axis.name] = Expr(0);
    for (const Axis& axis : view_.kernel().reduction) by[axis.name] = Expr(0);
    return by;
  }

  bool read_bound(int i, const Expr& e, ImageAxis& axis) const { return narrow(axis, e, output_axis(i), tap_axis(i)); }

  const ContractionView& view_;
  const ScalarNode& a_;
  const DType stored_;
  ConvolutionImage image_;
};

}  // namespace

std::optional<ImageAxis> image_axis(const Expr& index, const Axis& output, const Axis& tap) {
  const auto of_output = constant_stride(index, output.name), of_tap = constant_stride(index, tap.name);
  if (!of_output || !of_tap || !output.extent.is_constant() || !tap.extent.is_constant()) return std::nullopt;
  ImageAxis axis;
  axis.outputs = output.extent.value();
  axis.taps = tap.extent.value();
  if (*of_output < 0 || *of_tap < 0 || (axis.outputs > 1 && *of_output == 0) || (axis.taps > 1 && *of_tap == 0))
    return std::nullopt;
  axis.step = std::gcd(*of_output, *of_tap);
  if (axis.step == 0) return std::nullopt;
  axis.stride = std::max<std::int64_t>(1, *of_output / axis.step);
  axis.dilation = std::max<std::int64_t>(1, *of_tap / axis.step);
  axis.last = (axis.outputs - 1) * axis.stride + (axis.taps - 1) * axis.dilation;
  return axis;
}

bool narrow(ImageAxis& axis, const Expr& guard, const Axis& output, const Axis& tap) {
  const auto constant = guard.substitute(at_zero(output, tap)).constant();
  const auto of_output = constant_stride(guard, output.name), of_tap = constant_stride(guard, tap.name);
  if (!constant || !of_output || !of_tap || (*of_output == 0 && *of_tap == 0)) return false;
  const std::int64_t unit = *of_output != 0 ? *of_output / axis.stride : *of_tap / axis.dilation;
  const Expr position = output.var * Expr(axis.stride) + tap.var * Expr(axis.dilation);
  if (unit == 0 || !(guard == Expr(unit) * position + Expr(*constant))) return false;
  if (unit > 0)
    axis.first = std::max(axis.first, -divide_down(*constant, unit));
  else
    axis.last = std::min(axis.last, divide_down(*constant, -unit));
  return true;
}

std::optional<ConvolutionImage> convolution_image(const ContractionView& view, DType stored) {
  return ImageReader(view, stored).run();
}

}  // namespace oclc

#include "compiler/codegen/contraction_image.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace oclc {
namespace {

std::int64_t divide_down(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

class ImageReader {
 public:
  ImageReader(const ContractionView& view, DType stored) : view_(view), a_(view.a()), stored_(stored) {}

  std::optional<ConvolutionImage> run() {
    const Contraction& roles = view_.roles();
    if (roles.m.size() != 3 || roles.k.size() != 3 || !roles.batch.empty() || !is_plain_load(a_)) return std::nullopt;
    if (view_.operand_of(a_).dtype != stored_ || a_.number != 0) return std::nullopt;
    const auto per_image = a_.index.coefficient(view_.axis(roles.m[0]).name);
    const auto per_channel = constant_stride(a_.index, view_.inner_axis().name);
    if (!per_image || !per_channel || !read_steps(0, image_.y) || !read_steps(1, image_.x)) return std::nullopt;
    image_.per_image = *per_image;
    image_.per_channel = *per_channel;
    for (const Expr& e : a_.guard) {
      if (!read_bound(0, e, image_.y) && !read_bound(1, e, image_.x)) return std::nullopt;
    }
    image_.origin = a_.index.substitute(zero());
    return image_;
  }

 private:
  const Axis& output_axis(int i) const { return view_.axis(view_.roles().m[static_cast<std::size_t>(i) + 1]); }
  const Axis& tap_axis(int i) const { return view_.reduction(view_.roles().k[static_cast<std::size_t>(i)]); }

  bool read_steps(int i, ImageAxis& axis) const {
    const auto output = constant_stride(a_.index, output_axis(i).name), tap = constant_stride(a_.index, tap_axis(i).name);
    if (!output || !tap || !output_axis(i).extent.is_constant() || !tap_axis(i).extent.is_constant()) return false;
    axis.outputs = output_axis(i).extent.value();
    axis.taps = tap_axis(i).extent.value();
    if (*output < 0 || *tap < 0 || (axis.outputs > 1 && *output == 0) || (axis.taps > 1 && *tap == 0)) return false;
    axis.step = std::gcd(*output, *tap);
    if (axis.step == 0) return false;
    axis.stride = std::max<std::int64_t>(1, *output / axis.step);
    axis.dilation = std::max<std::int64_t>(1, *tap / axis.step);
    axis.last = (axis.outputs - 1) * axis.stride + (axis.taps - 1) * axis.dilation;
    return true;
  }

  Substitution zero() const {
    Substitution by;
    for (const Axis& axis : view_.kernel().axes) by[axis.name] = Expr(0);
    for (const Axis& axis : view_.kernel().reduction) by[axis.name] = Expr(0);
    return by;
  }

  // Guards say unit * position + constant >= 0 or constant - unit * position >= 0.
  bool read_bound(int i, const Expr& e, ImageAxis& axis) const {
    const auto constant = e.substitute(zero()).constant();
    const auto output = constant_stride(e, output_axis(i).name), tap = constant_stride(e, tap_axis(i).name);
    if (!constant || !output || !tap || (*output == 0 && *tap == 0)) return false;
    const std::int64_t unit = *output != 0 ? *output / axis.stride : *tap / axis.dilation;
    if (unit == 0 || !(e == Expr(unit) * position(i, axis) + Expr(*constant))) return false;
    if (unit > 0)
      axis.first = std::max(axis.first, -divide_down(*constant, unit));
    else
      axis.last = std::min(axis.last, divide_down(*constant, -unit));
    return true;
  }

  Expr position(int i, const ImageAxis& axis) const {
    return output_axis(i).var * Expr(axis.stride) + tap_axis(i).var * Expr(axis.dilation);
  }

  const ContractionView& view_;
  const ScalarNode& a_;
  const DType stored_;
  ConvolutionImage image_;
};

}  // namespace

std::optional<ConvolutionImage> convolution_image(const ContractionView& view, DType stored) {
  return ImageReader(view, stored).run();
}

}  // namespace oclc

// Weight gradients as convolutions of the images with the features, the images' numbers in the place of channels:
//   dw[o, c, i, j] = sum over n, y, x of x[c][n][y * stride + i * dilation - pad, ...] * dy[o][n][y, x]
// So strides become dilations and dilations strides, the window has as many taps as features have positions, and no patches
// are written. Images lie innermost, one position after another, so that loaders copy whole vectors of terms.
#include "compiler/passes/gradients/expand_gradients.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/passes/layout/layout.h"

namespace oclc {
namespace {

// Images that are vectors; columns and rows that fill tiles of matrix units.
constexpr std::int64_t kVectorOfImages = 4, kFewestImages = 16, kLeastColumns = 32, kFewestPatchRows = 128;

}  // namespace

Value* correlated_weight_grad(Builder& b, const Node& node) {
  Value *x = node.inputs[0], *y = node.inputs[1];
  const Windows windows(node);
  const auto& kernel = node.get<Ints>("kernel");
  if (kernel.size() != 2 || node.get<std::int64_t>("group") != 1 || all_ones(kernel) || !x->type.is_static() ||
      !y->type.is_static())
    return nullptr;
  const auto size = [](const Value* v, std::size_t axis) { return v->type.shape[axis].value(); };
  const std::int64_t images = size(x, 0), rows = size(x, 1) * kernel[0] * kernel[1];
  if (images % kVectorOfImages != 0 || images < kFewestImages || size(y, 1) < kLeastColumns || rows < kFewestPatchRows)
    return nullptr;
  ConvOptions options;
  options.strides = windows.dilations;
  options.dilations = windows.strides;
  options.pads = windows.pads;
  for (std::size_t i = 0; i < 2; ++i) {
    // Rows and columns of the image that no window reads are left out, or positions that the filter does not have would be.
    const std::int64_t reach = (size(y, i + 2) - 1) * windows.strides[i] + (kernel[i] - 1) * windows.dilations[i] + 1;
    options.pads[i + 2] = reach - size(x, i + 2) - windows.pads[i];
    if (options.pads[i] < 0) return nullptr;
    if (options.pads[i + 2] < 0) {
      x = b.slice_axis(x, static_cast<std::int64_t>(i) + 2, Expr(0), Expr(size(x, i + 2) + options.pads[i + 2]));
      options.pads[i + 2] = 0;
    }
  }
  Value* terms = stored_channels_last(b, b.transpose(x, {1, 0, 2, 3}));
  Value* sums = b.conv(terms, b.transpose(y, {1, 0, 2, 3}), nullptr, options);
  sums->producer->attributes[std::string(kCorrelates)] = std::int64_t{1};
  return b.transpose(sums, {1, 0, 2, 3});
}

}  // namespace oclc

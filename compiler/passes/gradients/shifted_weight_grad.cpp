// Weight gradients without patches, for targets that lay out both operands of a product before they multiply.
//
// Images lie one after another in cells of rows of `width` elements, with one margin of zeros between neighbours. There
// position (y, x) of a window and tap (i, j) meet at y * width + x + i * width + j, whatever the position: the gradient of tap
// (i, j) is the product of the images with the features, both as long rows, one of them moved: by i lines on the left, and by j
// on the right. Each operand is so laid out once a row or column of the filter, where patches hold the images once a tap.
//   dw[o, c, i, j] = sum over k of image[c][k + i * width] * feature[o][k - j]
#include <algorithm>

#include "compiler/ir/division.h"
#include "compiler/passes/gradients/expand_gradients.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Elements of a vector, and terms of a step of a product.
constexpr std::int64_t kVector = 4, kStep = 32;
// Rows and columns that fill tiles.
constexpr std::int64_t kLeastUnitChannels = 32;

}  // namespace

Value* shifted_weight_grad(Builder& b, const Node& node) {
  Value *x = node.inputs[0], *y = node.inputs[1];
  const Windows windows(node);
  const auto& kernel = node.get<Ints>("kernel");
  if (kernel.size() != 2 || node.get<std::int64_t>("group") != 1 || !all_ones(windows.strides) ||
      !all_ones(windows.dilations) || all_ones(kernel) || !x->type.is_static() || !y->type.is_static())
    return nullptr;
  const auto size = [](const Value* v, std::size_t axis) { return v->type.shape[axis].value(); };
  const std::int64_t images = size(x, 0), channels = size(x, 1), features = size(y, 1), rows = size(x, 2), columns = size(x, 3);
  const Ints& pads = windows.pads;
  if (channels < kLeastUnitChannels || features < kLeastUnitChannels) return nullptr;
  for (std::size_t i = 0; i < 4; ++i) {
    if (pads[i] < 0 || pads[i] >= kernel[i % 2]) return nullptr;
  }
  const std::int64_t height = rows + std::max(pads[0], pads[2]),
                     width = ceil_div(columns + pads[1] + pads[3], kVector) * kVector;
  const std::int64_t terms = images * height * width;
  const auto positions = static_cast<double>(images * size(y, 2) * size(y, 3));
  if (terms % kStep != 0 || static_cast<double>(terms) > cost::kShiftedSurplus * positions) return nullptr;

  // v[n, c, h, w] as c rows of cells, v's first element at (top, left) of its cell, and each of them moved by the taps of a
  // filter: [terms, taps * c]. Behind the last image lies an empty cell, where the last rows end.
  const auto moved = [&](Value* v, std::int64_t top, std::int64_t left, std::int64_t taps, std::int64_t distance) {
    const std::int64_t count = size(v, 1), spare = (taps - 1) * distance;
    const Exprs before{Expr(0), Expr(0), Expr(top), Expr(left)};
    const Exprs after{Expr(0), Expr(1), Expr(height - top - size(v, 2)), Expr(width - left - size(v, 3))};
    const std::int64_t length = terms + height * width;
    v = b.pad(b.transpose(v, {1, 0, 2, 3}), before, after, 0);
    v = b.call("unfold", {b.reshape(v, {Expr(1), Expr(count), Expr(1), Expr(length)})},
               {{"kernel", Ints{1, taps}},
                {"strides", Ints{1, 1}},
                {"dilations", Ints{1, distance}},
                {"pads", Ints{0, 0, 0, 0}},
                {"group", std::int64_t{1}},
                {"gathered", std::int64_t{1}}});
    return b.slice_axis(b.reshape(v, {Expr(length - spare), Expr(taps * count)}), 0, Expr(0), Expr(terms));
  };
  // The taps of the right operand are in reverse.
  Value* sums = b.matmul(moved(x, pads[0], pads[1], kernel[0], width), moved(y, 0, kernel[1] - 1, kernel[1], 1), true, false);
  const Shape parts{Expr(kernel[0]), Expr(channels), Expr(kernel[1]), Expr(features)};
  sums = b.slice(b.reshape(sums, parts), {Expr(0), Expr(0), Expr(kernel[1] - 1), Expr(0)}, parts, {1, 1, -1, 1});
  return b.transpose(sums, {3, 1, 0, 2});
}

}  // namespace oclc

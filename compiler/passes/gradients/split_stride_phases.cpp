// Data gradients of strided convolutions as one convolution for each class of positions, with the taps and positions that the
// class has: the classes of a 3x3 filter by the stride 2 have 9 taps together, those of one convolution with all classes as
// features 16, and one row and column more.
#include <algorithm>

#include "compiler/ir/division.h"
#include "compiler/passes/gradients/expand_gradients.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// An axis of the result: its positions place + stride * j meet the taps tap + stride * t at the positions from + j - t of y.
struct ClassAxis {
  std::int64_t tap, from, taps;
  std::int64_t before, after;  // zeros around y, or elements of it that are left out
};

ClassAxis class_axis(std::int64_t place, std::int64_t stride, std::int64_t pad, std::int64_t kernel, std::int64_t length,
                     std::int64_t size) {
  ClassAxis axis{};
  axis.tap = (place + pad) % stride;
  axis.from = (place + pad) / stride;
  axis.taps = ceil_div(kernel - axis.tap, stride);
  axis.before = axis.taps - 1 - axis.from;
  axis.after = ceil_div(size, stride) + axis.from - length;
  return axis;
}

bool gains(const Node& node) {
  const Shape &y = node.inputs[0]->type.shape, &w = node.inputs[1]->type.shape;
  const auto& sizes = node.get<Exprs>("output_shape");
  const Windows windows(node);
  if (node.get<std::int64_t>("group") != 1 || !all_ones(windows.dilations) || all_ones(windows.strides)) return false;
  double joined = 1, separate = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is_constant() || !y[i + 2].is_constant()) return false;
    const std::int64_t kernel = w[i + 2].value(), stride = windows.strides[i], taps = ceil_div(kernel, stride);
    // Wider margins, or fewer positions, could leave a class without any.
    if (kernel < stride || sizes[i].value() < stride || windows.pads[i] >= kernel || y[i + 2].value() < 3) return false;
    joined *= static_cast<double>(stride * taps * (y[i + 2].value() + taps - 1));
    separate *= static_cast<double>(kernel * ceil_div(sizes[i].value(), stride));
  }
  return separate < joined * cost::kStridePhaseGain;
}

}  // namespace

Value* split_stride_phases(Builder& b, const Node& node) {
  if (!gains(node)) return nullptr;
  Value *y = node.inputs[0], *w = node.inputs[1];
  const auto& sizes = node.get<Exprs>("output_shape");
  const Windows windows(node);
  const std::size_t rank = sizes.size();
  const Expr images = y->type.shape[0], channels = w->type.shape[1];
  std::vector<Value*> parts;
  for (const Ints& place : taps_of(windows.strides)) {
    Exprs first = zeros(rank + 2), start = first;
    Shape filter{w->type.shape[0], channels}, part = y->type.shape;
    Ints steps{1, 1};
    ConvOptions options;
    options.pads.assign(2 * rank, 0);
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t length = part[i + 2].value(), kernel = w->type.shape[i + 2].value();
      const ClassAxis axis = class_axis(place[i], windows.strides[i], windows.pads[i], kernel, length, sizes[i].value());
      first[i + 2] = Expr(axis.tap);
      filter.emplace_back(axis.taps);
      steps.push_back(windows.strides[i]);
      options.pads[i] = std::max<std::int64_t>(axis.before, 0);
      options.pads[rank + i] = std::max<std::int64_t>(axis.after, 0);
      const std::int64_t cut = options.pads[i] - axis.before;
      start[i + 2] = Expr(cut);
      part[i + 2] = Expr(length - cut - (options.pads[rank + i] - axis.after));
    }
    Value* taps = adjoint_weights(b, b.slice(w, first, filter, steps), 1);
    parts.push_back(b.conv(b.slice(y, start, part, ones(rank + 2)), taps, nullptr, options));
  }
  Value* z = b.concat(parts, 1);
  z->layout = channels_last(z->type.rank());
  z->producer->attributes[std::string(kMadeInPlace)] = std::int64_t{1};
  // [images, classes.., channels, positions..] interleaved.
  Shape split{images}, whole{images, channels}, wanted = whole;
  Ints back{0, static_cast<std::int64_t>(rank) + 1};
  split.insert(split.end(), windows.strides.begin(), windows.strides.end());
  split.push_back(channels);
  for (std::size_t i = 0; i < rank; ++i) {
    split.push_back(z->type.shape[i + 2]);
    back.push_back(static_cast<std::int64_t>(rank + 2 + i));
    back.push_back(static_cast<std::int64_t>(i) + 1);
    whole.push_back(z->type.shape[i + 2] * Expr(windows.strides[i]));
    wanted.push_back(sizes[i]);
  }
  z = b.reshape(b.transpose(b.reshape(z, split), back), whole);
  return b.slice(z, zeros(rank + 2), wanted, ones(rank + 2));
}

}  // namespace oclc

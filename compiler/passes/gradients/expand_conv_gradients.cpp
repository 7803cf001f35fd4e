// Gradients of convolutions as convolutions and products.
#include <algorithm>
#include <optional>
#include <tuple>

#include "compiler/passes/gradients/expand_gradients.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/passes/layout/conv_cost.h"
#include "compiler/passes/layout/layout.h"

namespace oclc {
namespace {

// Strides s cut the result into s classes of positions, each a convolution with every s-th tap; all classes are features of one
// convolution, whose result is interleaved (Shi et al.: Real-Time Single Image and Video Super-Resolution Using an Efficient
// Sub-Pixel Convolutional Neural Network, 2016).
Value* interleaved_classes(Builder& b, Value* y, Value* w, const Windows& windows, const Exprs& sizes) {
  const std::size_t rank = sizes.size();
  const Expr channels = w->type.shape[1];
  Exprs nothing = zeros(rank + 2), surplus = nothing;
  Shape cut{w->type.shape[0], channels}, classes{Expr(1)}, filter, split{y->type.shape[0]}, whole{y->type.shape[0], channels};
  Ints perm, back{0, static_cast<std::int64_t>(rank) + 1}, steps{1, 1}, pads;
  Exprs starts = zeros(2);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t stride = windows.strides[i], kernel = w->type.shape[i + 2].value(),
                       taps = (kernel + stride - 1) / stride;
    surplus[i + 2] = Expr(taps * stride - kernel);
    cut.emplace_back(taps);
    cut.emplace_back(stride);
    classes[0] *= Expr(stride);
    filter.emplace_back(taps);
    split.emplace_back(stride);
    perm.push_back(static_cast<std::int64_t>(2 * i) + 3);
    starts.emplace_back(taps - 1);
    steps.push_back(-1);
    pads.push_back(taps - 1);
  }
  perm.push_back(1);
  perm.push_back(0);
  for (std::size_t i = 0; i < rank; ++i) perm.push_back(static_cast<std::int64_t>(2 * i) + 2);
  Shape filters{classes[0] * channels, w->type.shape[0]};
  filters.insert(filters.end(), filter.begin(), filter.end());
  w = b.reshape(b.transpose(b.reshape(b.pad(w, nothing, surplus, 0), cut), perm), filters);
  ConvOptions options;
  options.pads = pads;
  options.pads.insert(options.pads.end(), pads.begin(), pads.end());
  Value* z = stored_channels_last(b, b.conv(y, b.slice(w, starts, filters, steps), nullptr, options));
  split.push_back(channels);
  Exprs after = nothing, first = nothing, wanted{y->type.shape[0], channels};
  for (std::size_t i = 0; i < rank; ++i) {
    split.push_back(z->type.shape[i + 2]);
    back.push_back(static_cast<std::int64_t>(rank + 2 + i));
    back.push_back(static_cast<std::int64_t>(i) + 1);
    const Expr length = z->type.shape[i + 2] * Expr(windows.strides[i]), pad(windows.pads[i]);
    whole.push_back(length);
    first[i + 2] = pad;
    after[i + 2] = max(pad + sizes[i] - length, Expr(0));
    wanted.push_back(sizes[i]);
  }
  z = b.reshape(b.transpose(b.reshape(z, split), back), whole);
  return b.slice(b.pad(z, nothing, after, 0), first, wanted, ones(rank + 2));
}

bool is_depthwise_grad(const Node& node) {
  return node.get<std::int64_t>("group") > 1 && node.output()->type.shape[1] == Expr(1) &&
         node.inputs[0]->type.shape[1] == node.inputs[1]->type.shape[1];
}

// One sum a tap over images and positions, all of them over the same axes: of `fixed` with the windows of `other` there.
// Mirrored: the taps are those of the reversed filter.
Value* sums_of_taps(Builder& b, const Node& node, Value* fixed, Value* other, const Windows& windows, bool mirrored) {
  const auto& kernel = node.get<Ints>("kernel");
  Ints axes = from_to(2, static_cast<std::int64_t>(fixed->type.rank()));
  axes.insert(axes.begin(), 0);
  std::vector<Value*> sums;
  for (Ints tap : taps_of(kernel)) {
    for (std::size_t i = 0; mirrored && i < tap.size(); ++i) tap[i] = kernel[i] - 1 - tap[i];
    Value* moved = tap_of(b, other, windows, tap, std::span(fixed->type.shape).subspan(2), 0);
    sums.push_back(b.reshape(b.reduce("reduce_sum", b.mul(fixed, moved), axes, false), {fixed->type.shape[1], Expr(1)}));
  }
  return b.reshape(sums.size() == 1 ? sums[0] : b.concat(sums, 1), node.output()->type.shape);
}

// Elements that a GPU loads together, and elements of a patch that fill a tile's rows.
constexpr std::int64_t kLoaded = 4, kFullPatch = 64;

// Weights of a gradient whose product waits for memory: a schedule cuts it into more pieces than a cache would want.
constexpr std::int64_t kFewResults = 8192;

// Rows of both operands of a weight gradient that a core's cache holds: more are added up in pieces.
constexpr std::int64_t kLongestPiece = 2048;

// Elements of each piece of a sum over all `images` and `positions`, which divides the sum; nothing if it stays whole.
std::optional<std::int64_t> piece_length(const Expr& images, const Expr& positions) {
  const Expr rows = images * positions;
  const auto divided = rows.is_constant() ? rows.constant() : positions.constant();
  if (!divided || *divided <= (rows.is_constant() ? 2 * kLongestPiece : kLongestPiece / 4)) return std::nullopt;
  std::int64_t length = std::min(*divided, kLongestPiece);
  while (*divided % length != 0) --length;
  return length < kLongestPiece / 8 ? std::nullopt : std::optional(length);
}

// Images and window positions outermost, channels innermost.
Value* with_channels_last(Builder& b, Value* v, std::int64_t group) {
  const auto rank = static_cast<std::int64_t>(v->type.rank());
  Ints perm = group > 1 ? Ints{1, 0} : Ints{0};
  const std::int64_t channels = group > 1 ? 2 : 1;
  for (const std::int64_t i : from_to(channels + 1, rank)) perm.push_back(i);
  perm.push_back(channels);
  return b.transpose(v, perm);
}

bool has_few_channels(const Node& node) {
  const Expr& channels = node.inputs[0]->type.shape[1];
  return channels.is_constant() && channels.value() < kWidestVector && all_ones(Windows(node).dilations);
}

// What each window reads, as [(group,) images, positions.., taps * channels]. Windows of few channels may be wider than the
// node's.
Value* patches_of(Builder& b, const Node& node, const Ints& kernel) {
  Value* x = node.inputs[0];
  const Windows windows(node);
  const auto group = node.get<std::int64_t>("group");
  const auto all = [](const Ints& list, std::int64_t v) {
    return std::all_of(list.begin(), list.end(), [v](auto e) { return e == v; });
  };
  if (group == 1 && all(kernel, 1) && all(windows.pads, 0) && all(windows.strides, 1)) return with_channels_last(b, x, 1);
  Ints pads = windows.pads;
  // Few channels: a row of a window is read as one vector from a padded copy.
  if (has_few_channels(node)) {
    Exprs before = zeros(x->type.rank()), after = before;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      before[i + 2] = Expr(pads[i]);
      after[i + 2] = Expr(pads[i + kernel.size()] + kernel[i] - node.get<Ints>("kernel")[i]);
    }
    x = stored_channels_last(b, b.pad(x, before, after, 0));
    pads.assign(pads.size(), 0);
  }
  return b.call(
      "unfold", {x},
      {{"kernel", kernel}, {"strides", windows.strides}, {"dilations", windows.dilations}, {"pads", pads}, {"group", group}});
}

// [group, taps.., channels, features], or [group, features, taps.., channels], as [group * features, channels, taps..].
Value* as_weights(Builder& b, Value* product, const Node& node, const Expr& features, bool features_first) {
  const auto group = node.get<std::int64_t>("group");
  const auto& kernel = node.get<Ints>("kernel");
  const Shape& result = node.output()->type.shape;
  Shape parts;
  Ints perm;
  if (group > 1) {
    parts.emplace_back(group);
    perm.push_back(0);
  }
  if (features_first) parts.push_back(features);
  for (const std::int64_t k : kernel) parts.emplace_back(k);
  parts.push_back(result[1]);
  if (!features_first) parts.push_back(features);
  const std::int64_t lead = group > 1 ? 1 : 0, first_tap = lead + (features_first ? 1 : 0),
                     channels = first_tap + static_cast<std::int64_t>(kernel.size());
  perm.push_back(features_first ? lead : channels + 1);
  perm.push_back(channels);
  for (const std::int64_t i : from_to(first_tap, channels)) perm.push_back(i);
  return b.reshape(b.transpose(b.reshape(product, parts), perm), result);
}

// Of v[.., taps of `kernel` * channels, features] the taps of the node's kernel, which may be less wide.
Value* without_surplus(Builder& b, Value* v, const Node& node, const Ints& kernel) {
  const auto& wanted = node.get<Ints>("kernel");
  if (kernel == wanted) return v;
  const Expr& channels = node.output()->type.shape[1];
  const std::size_t axis = v->type.rank() - 2;
  Shape parts = v->type.shape, narrow = parts;
  narrow[axis] = product(std::span(node.output()->type.shape).subspan(1));
  parts[axis] = channels;
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(axis), Expr(kernel.back()));
  for (std::size_t i = kernel.size() - 1; i-- > 0;)
    parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(axis), Expr(kernel[i]));
  const auto last = static_cast<std::int64_t>(axis + kernel.size()) - 1;
  return b.reshape(b.slice_axis(b.reshape(v, parts), last, Expr(0), Expr(wanted.back())), narrow);
}

// Product over images and positions of the matrix of patches, of windows of `kernel`, with the features.
Value* weight_grad_of_patches(Builder& b, const Node& node, const Ints& kernel, bool in_pieces) {
  Value* y = node.inputs[1];
  const Shape &sy = y->type.shape, &result = node.output()->type.shape;
  const auto group = node.get<std::int64_t>("group");
  const Expr positions = product(std::span(sy).subspan(2)), rows = sy[0] * positions;
  Expr width = result[1];
  for (const std::int64_t k : kernel) width *= Expr(k);
  const Expr features = floor_div(sy[1], Expr(group));
  Value* patches = patches_of(b, node, kernel);
  Value* columns = y;
  if (group > 1) {
    Shape split{sy[0], Expr(group), features};
    split.insert(split.end(), sy.begin() + 2, sy.end());
    columns = b.reshape(y, split);
  }
  columns = with_channels_last(b, columns, group);
  // Columns that fill vectors; of two that do, those whose gradients lie together in the result.
  const bool taps_are_columns = width.is_constant() && width.value() % kWidestVector == 0 && kernel == node.get<Ints>("kernel");
  const auto [left, left_width, right, right_width] =
      taps_are_columns ? std::tuple(columns, features, patches, width) : std::tuple(patches, width, columns, features);
  Value* sums = nullptr;
  if (const auto length = group == 1 && in_pieces ? piece_length(sy[0], positions) : std::nullopt) {
    const Expr pieces = floor_div(rows, Expr(*length));
    const auto split = [&](Value* v, const Expr& last) { return b.reshape(v, {pieces, Expr(*length), last}); };
    Value* of_pieces = b.matmul(split(left, left_width), split(right, right_width), true, false);
    sums = b.reduce("reduce_sum", without_surplus(b, of_pieces, node, kernel), {0}, false);
  } else {
    const auto matrix = [&](Value* v, const Expr& last) {
      return group == 1 ? b.reshape(v, {rows, last}) : b.reshape(v, {Expr(group), rows, last});
    };
    sums = without_surplus(b, b.matmul(matrix(left, left_width), matrix(right, right_width), true, false), node, kernel);
  }
  return as_weights(b, sums, node, features, taps_are_columns);
}

}  // namespace

// A convolution of the positions, spread by the strides, with the reversed filter. Marked: what it rounds decides no sign.
Value* expand_conv_transpose(Builder& b, const Node& node) {
  Value *y = node.inputs[0], *w = node.inputs[1];
  const Windows windows(node);
  const auto& sizes = node.get<Exprs>("output_shape");
  const auto group = node.get<std::int64_t>("group");
  const auto every = [&](auto holds) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!holds(w->type.shape[i + 2].value(), windows.strides[i], windows.dilations[i])) return false;
    }
    return true;
  };
  const bool strided = std::any_of(windows.strides.begin(), windows.strides.end(), [](auto stride) { return stride > 1; });
  if (strided && every([](auto kernel, auto, auto) { return kernel == 1; })) {
    ConvOptions one;
    one.group = group;
    Ints starts;
    for (std::size_t i = 0; i < sizes.size(); ++i) starts.push_back(-windows.pads[i]);
    return spread(b, b.conv(y, adjoint_weights(b, w, group), nullptr, one), starts, windows.strides, sizes);
  }
  if (strided && group == 1 && every([](auto kernel, auto stride, auto dilation) { return kernel >= stride && dilation == 1; }))
    return interleaved_classes(b, y, w, windows, sizes);
  ConvOptions options;
  options.dilations = windows.dilations;
  options.group = group;
  bool plain = true;  // padding that the convolution itself can do
  Ints ends;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t reach = windows.dilations[i] * (w->type.shape[i + 2].value() - 1), begin = reach - windows.pads[i];
    const Expr end = sizes[i] - y->type.shape[i + 2] + Expr(reach - begin);
    plain = plain && windows.strides[i] == 1 && begin >= 0 && end.is_constant() && end.value() >= 0;
    options.pads.push_back(begin);
    ends.push_back(end.is_constant() ? end.value() : 0);
  }
  options.pads.insert(options.pads.end(), ends.begin(), ends.end());
  if (!plain) {
    Ints starts;
    Exprs padded;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::int64_t reach = windows.dilations[i] * (w->type.shape[i + 2].value() - 1);
      starts.push_back(reach - windows.pads[i]);
      padded.push_back(sizes[i] + Expr(reach));
    }
    y = spread(b, y, starts, windows.strides, padded);
    options.pads.clear();
  }
  Value* x = b.conv(y, adjoint_weights(b, w, group), nullptr, options);
  x->producer->attributes[std::string(kAdjoint)] = std::int64_t{1};
  return x;
}

Value* expand_conv_weight_grad(Builder& b, const Node& node) {
  if (is_depthwise_grad(node)) return sums_of_taps(b, node, node.inputs[1], node.inputs[0], Windows(node), false);
  return weight_grad_of_patches(b, node, node.get<Ints>("kernel"), true);
}

Value* whole_weight_grad(Builder& b, const Node& node) {
  const bool is_known = node.inputs[0]->type.is_static() && node.inputs[1]->type.is_static();
  if (is_depthwise_grad(node) || !is_known || node.output()->type.elements().value() > kFewResults) return nullptr;
  return weight_grad_of_patches(b, node, node.get<Ints>("kernel"), false);
}

Value* mirrored_weight_grad(Builder& b, const Node& node) {
  Windows windows(node);
  if (!is_depthwise_grad(node) || !all_ones(windows.strides)) return nullptr;
  const auto& kernel = node.get<Ints>("kernel");
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    windows.pads[i] = windows.dilations[i] * (kernel[i] - 1) - windows.pads[i];
    if (windows.pads[i] < 0) return nullptr;
  }
  return sums_of_taps(b, node, node.inputs[0], node.inputs[1], windows, true);
}

Value* widened_weight_grad(Builder& b, const Node& node) {
  if (node.get<std::int64_t>("group") != 1 || !has_few_channels(node)) return nullptr;
  Ints kernel = node.get<Ints>("kernel");
  const std::int64_t taps = kernel.back(), channels = node.inputs[0]->type.shape[1].value();
  const Expr width = product(std::span(node.output()->type.shape).subspan(1));
  if (width.value() % kLoaded == 0 || width.value() < kFullPatch) return nullptr;
  while (kernel.back() * channels % kLoaded != 0) ++kernel.back();
  const bool is_worthwhile = kernel.back() - taps <= taps / 2;
  return is_worthwhile ? weight_grad_of_patches(b, node, kernel, true) : nullptr;
}

}  // namespace oclc

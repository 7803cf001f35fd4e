// expand_gradients: the operators that gradients are made of (ops/backward.cpp) become convolutions, products, sums and index
// maps, which have kernels and strategies. Without it they have none.
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "compiler/ir/op_def.h"
#include "compiler/ops/builder.h"
#include "compiler/passes/layout.h"
#include "compiler/passes/pass.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Exprs = std::vector<Expr>;

Exprs zeros(std::size_t count) { return Exprs(count, Expr(0)); }
Ints ones(std::size_t count) { return Ints(count, 1); }

// v with its spatial axes spread: see the operator.
Value* spread(Builder& b, Value* v, const Ints& starts, const Ints& strides, std::span<const Expr> sizes) {
  Ints all_starts{0, 0}, all_strides{1, 1};
  Exprs all_sizes{v->type.shape[0], v->type.shape[1]};
  all_starts.insert(all_starts.end(), starts.begin(), starts.end());
  all_strides.insert(all_strides.end(), strides.begin(), strides.end());
  all_sizes.insert(all_sizes.end(), sizes.begin(), sizes.end());
  return b.call("spread", {v}, {{"starts", all_starts}, {"strides", all_strides}, {"sizes", all_sizes}});
}

Value* stored_channels_last(Builder& b, Value* v) {
  v = b.call("store", {v}, {});
  v->layout = channels_last(v->type.rank());
  return v;
}

struct Windows {
  explicit Windows(const Node& node)
      : strides(node.get<Ints>("strides")), dilations(node.get<Ints>("dilations")), pads(node.get<Ints>("pads")) {}
  Ints strides, dilations, pads;
};

// Each tap as its index along the spatial axes, row-major.
std::vector<Ints> taps_of(const Ints& kernel) {
  std::vector<Ints> taps{{}};
  for (const std::int64_t size : kernel) {
    std::vector<Ints> longer;
    for (const Ints& tap : taps) {
      for (std::int64_t k = 0; k < size; ++k) {
        longer.push_back(tap);
        longer.back().push_back(k);
      }
    }
    taps = std::move(longer);
  }
  return taps;
}

// x[n, c, p * stride + tap * dilation - pad] for all window positions p; `outside` beyond the data.
Value* tap_of(Builder& b, Value* x, const Windows& windows, const Ints& tap, std::span<const Expr> positions, double outside) {
  const std::size_t rank = x->type.rank();
  Exprs before = zeros(rank), after = zeros(rank), starts = zeros(rank), sizes = x->type.shape;
  Ints steps = ones(rank);
  for (std::size_t i = 0; i < tap.size(); ++i) {
    const std::size_t axis = i + 2;
    const std::int64_t offset = tap[i] * windows.dilations[i];
    before[axis] = Expr(windows.pads[i]);
    const Expr last = (positions[i] - 1) * Expr(windows.strides[i]) + Expr(offset - windows.pads[i]);
    after[axis] = max(last - x->type.shape[axis] + 1, Expr(0));
    starts[axis] = Expr(offset);
    sizes[axis] = positions[i];
    steps[axis] = windows.strides[i];
  }
  return b.slice(b.pad(x, before, after, outside), starts, sizes, steps);
}

// Sum over all taps of what `piece` gives for the windows, spread back to the data.
template <class F>
Value* sum_of_taps(Builder& b, const Node& node, const F& piece) {
  const Windows windows(node);
  const auto& sizes = node.get<Exprs>("input_shape");
  const std::vector<Ints> taps = taps_of(node.get<Ints>("kernel"));
  Value* sum = nullptr;
  for (std::size_t t = 0; t < taps.size(); ++t) {
    Ints starts;
    for (std::size_t i = 0; i < sizes.size(); ++i) starts.push_back(taps[t][i] * windows.dilations[i] - windows.pads[i]);
    Value* v = spread(b, piece(static_cast<std::int64_t>(t)), starts, windows.strides, sizes);
    sum = sum ? b.add(sum, v) : v;
  }
  return sum;
}

// [O, C / group, k..] to [C, O / group, k..], the taps reversed.
Value* adjoint_weights(Builder& b, Value* w, std::int64_t group) {
  const Shape& shape = w->type.shape;
  Shape split{Expr(group), floor_div(shape[0], Expr(group)), shape[1]};
  Ints perm{0, 2, 1};
  Shape joined{shape[1] * Expr(group), split[1]};
  Exprs starts = zeros(2);
  Ints steps{1, 1};
  for (std::size_t i = 2; i < shape.size(); ++i) {
    split.push_back(shape[i]);
    perm.push_back(static_cast<std::int64_t>(i) + 1);
    joined.push_back(shape[i]);
    starts.push_back(shape[i] - 1);
    steps.push_back(-1);
  }
  w = b.reshape(b.transpose(b.reshape(w, split), perm), joined);
  return b.slice(w, starts, joined, steps);
}

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

// A convolution of the positions, spread by the strides, with the reversed filter.
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
  return b.conv(y, adjoint_weights(b, w, group), nullptr, options);
}

Ints from_to(std::int64_t begin, std::int64_t end) {
  Ints list;
  for (std::int64_t i = begin; i < end; ++i) list.push_back(i);
  return list;
}

// One sum a tap over images and positions, all of them over the same axes.
Value* depthwise_weight_grad(Builder& b, const Node& node) {
  Value *x = node.inputs[0], *y = node.inputs[1];
  const Windows windows(node);
  Ints axes = from_to(2, static_cast<std::int64_t>(x->type.rank()));
  axes.insert(axes.begin(), 0);
  std::vector<Value*> sums;
  for (const Ints& tap : taps_of(node.get<Ints>("kernel"))) {
    Value* moved = tap_of(b, x, windows, tap, std::span(y->type.shape).subspan(2), 0);
    sums.push_back(b.reshape(b.reduce("reduce_sum", b.mul(y, moved), axes, false), {y->type.shape[1], Expr(1)}));
  }
  return b.reshape(sums.size() == 1 ? sums[0] : b.concat(sums, 1), node.output()->type.shape);
}

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

// Product over images and positions of the matrix of patches with the features.
Value* expand_conv_weight_grad(Builder& b, const Node& node) {
  Value *x = node.inputs[0], *y = node.inputs[1];
  const Shape &sx = x->type.shape, &sy = y->type.shape, &result = node.output()->type.shape;
  const auto group = node.get<std::int64_t>("group");
  const auto& kernel = node.get<Ints>("kernel");
  if (group > 1 && result[1] == Expr(1) && sx[1] == sy[1]) return depthwise_weight_grad(b, node);
  const auto rank = static_cast<std::int64_t>(sx.size());
  const Expr rows = sy[0] * product(std::span(sy).subspan(2)), features = floor_div(sy[1], Expr(group));
  const Windows windows(node);
  const auto is = [](const Ints& list, std::int64_t v) {
    return std::all_of(list.begin(), list.end(), [v](auto e) { return e == v; });
  };
  Value* patches = nullptr;  // [group, rows, taps * channels]
  const Expr width = product(std::span(result).subspan(1));
  if (group == 1 && is(kernel, 1) && is(windows.pads, 0) && is(windows.strides, 1)) {
    Ints perm{0};
    for (const std::int64_t i : from_to(2, rank)) perm.push_back(i);
    perm.push_back(1);
    patches = b.transpose(x, perm);
  } else {
    Ints pads = windows.pads;
    // Few channels: a row of a window is read as one vector from a padded copy.
    if (sx[1].is_constant() && sx[1].value() < kWidestVector && is(windows.dilations, 1)) {
      Exprs before = zeros(x->type.rank()), after = before;
      for (std::size_t i = 0; i < kernel.size(); ++i) {
        before[i + 2] = Expr(pads[i]);
        after[i + 2] = Expr(pads[i + kernel.size()]);
      }
      x = stored_channels_last(b, b.pad(x, before, after, 0));
      pads.assign(pads.size(), 0);
    }
    patches = b.call(
        "unfold", {x},
        {{"kernel", kernel}, {"strides", windows.strides}, {"dilations", windows.dilations}, {"pads", pads}, {"group", group}});
  }
  Value* columns = y;
  if (group > 1) {
    Shape split{sy[0], Expr(group), features};
    split.insert(split.end(), sy.begin() + 2, sy.end());
    columns = b.reshape(y, split);
  }
  const std::int64_t lead = group > 1 ? 1 : 0;
  // Columns that fill vectors; of two that do, those whose gradients lie together in the result.
  const bool taps_are_columns = width.is_constant() && width.value() % kWidestVector == 0;
  Ints perm{0};
  if (group > 1) perm.insert(perm.begin(), 1);
  for (const std::int64_t i : from_to(2 + lead, rank + lead)) perm.push_back(i);
  perm.push_back(1 + lead);
  columns = b.transpose(columns, perm);
  const auto matrix = [&](Value* v, const Expr& last) {
    return group == 1 ? b.reshape(v, {rows, last}) : b.reshape(v, {Expr(group), rows, last});
  };
  const auto [left, left_width, right, right_width] =
      taps_are_columns ? std::tuple(columns, features, patches, width) : std::tuple(patches, width, columns, features);
  Value* product = nullptr;
  const auto length = group == 1 ? piece_length(sy[0], oclc::product(std::span(sy).subspan(2))) : std::nullopt;
  if (length) {
    const Expr pieces = floor_div(rows, Expr(*length));
    const auto split = [&](Value* v, const Expr& last) { return b.reshape(v, {pieces, Expr(*length), last}); };
    product = b.reduce("reduce_sum", b.matmul(split(left, left_width), split(right, right_width), true, false), {0}, false);
  } else {
    product = b.matmul(matrix(left, left_width), matrix(right, right_width), true, false);
  }
  // [group, taps.., channels, features] or [group, features, taps.., channels] to [group * features, channels, taps..].
  Shape parts;
  Ints back;
  if (group > 1) {
    parts.emplace_back(group);
    back.push_back(0);
  }
  if (taps_are_columns) parts.push_back(features);
  for (const std::int64_t k : kernel) parts.emplace_back(k);
  parts.push_back(result[1]);
  if (!taps_are_columns) parts.push_back(features);
  const std::int64_t first_tap = lead + (taps_are_columns ? 1 : 0), channels = first_tap + rank - 2;
  back.push_back(taps_are_columns ? lead : channels + 1);
  back.push_back(channels);
  for (const std::int64_t i : from_to(first_tap, channels)) back.push_back(i);
  return b.reshape(b.transpose(b.reshape(product, parts), back), result);
}

Value* expand_max_pool_index(Builder& b, const Node& node) {
  Value* x = node.inputs[0];
  const Windows windows(node);
  const auto& kernel = node.get<Ints>("kernel");
  PoolOptions options;
  options.kernel = kernel;
  options.strides = windows.strides;
  options.dilations = windows.dilations;
  options.pads = windows.pads;
  options.ceil_mode = node.get_or<std::int64_t>("ceil_mode", 0) != 0;
  Value* y = b.max_pool(x, options);
  const std::vector<Ints> taps = taps_of(kernel);
  const auto number = [&](std::size_t t) { return b.scalar(DType::i32, static_cast<double>(t)); };
  Value* index = number(taps.size() - 1);
  for (std::size_t t = taps.size() - 1; t-- > 0;) {
    Value* v = tap_of(b, x, windows, taps[t], std::span(y->type.shape).subspan(2), -INFINITY);
    Value* chosen = b.call("equal", {v, y});
    if (is_float(x->type.dtype)) chosen = b.call("or", {chosen, b.unary("is_nan", v)});
    index = b.where(chosen, number(t), index);
  }
  return b.expand(index, node.output()->type.shape);
}

Value* expand_max_pool_grad(Builder& b, const Node& node) {
  Value *index = node.inputs[0], *dy = node.inputs[1];
  Value* zero = b.scalar(dy->type.dtype, 0);
  return sum_of_taps(b, node, [&](std::int64_t tap) {
    return b.where(b.call("equal", {index, b.scalar(DType::i32, static_cast<double>(tap))}), dy, zero);
  });
}

// Number of a window's taps along one axis that count, by window position.
Value* tap_counts(Builder& b, const Node& node, std::size_t axis, const Expr& positions, std::size_t rank) {
  const Windows windows(node);
  const bool with_padding = node.get<std::int64_t>("count_include_pad") != 0;
  const Expr& size = node.get<Exprs>("input_shape")[axis];
  if (!positions.is_constant() || !size.is_constant())
    throw CompileError({.stage = "expand_gradients",
                        .wanted = "known image sizes for the gradient of an average over padded windows",
                        .found = size.text(),
                        .exit_code = ExitCode::unsupported});
  const std::size_t axes = windows.strides.size();
  std::vector<float> counts;
  for (std::int64_t p = 0; p < positions.value(); ++p) {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < node.get<Ints>("kernel")[axis]; ++k) {
      const std::int64_t at = p * windows.strides[axis] - windows.pads[axis] + k * windows.dilations[axis];
      count += with_padding ? at < size.value() + windows.pads[axis + axes] : at >= 0 && at < size.value();
    }
    counts.push_back(static_cast<float>(count));
  }
  Shape shape(rank, Expr(1));
  shape[axis + 2] = positions;
  const auto length = static_cast<std::int64_t>(counts.size());
  return b.reshape(b.floats(std::move(counts), {length}), shape);
}

Value* expand_avg_pool_grad(Builder& b, const Node& node) {
  Value* dy = node.inputs[0];
  const std::size_t rank = dy->type.rank();
  const Windows windows(node);
  const bool no_padding = std::all_of(windows.pads.begin(), windows.pads.end(), [](std::int64_t p) { return p == 0; }) &&
                          node.get_or<std::int64_t>("ceil_mode", 0) == 0;
  if (no_padding) {
    std::int64_t count = 1;
    for (const std::int64_t k : node.get<Ints>("kernel")) count *= k;
    dy = b.mul(dy, 1.0 / static_cast<double>(count));
  } else {
    for (std::size_t i = 0; i + 2 < rank; ++i)
      dy = b.div(dy, b.cast(tap_counts(b, node, i, dy->type.shape[i + 2], rank), dy->type.dtype));
  }
  return sum_of_taps(b, node, [&](std::int64_t) { return dy; });
}

// A product with the indices' one-hot matrix, which is computed in the product's loads.
Value* expand_scatter_add(Builder& b, const Node& node) {
  Value *indices = node.inputs[0], *updates = node.inputs[1];
  const DType dtype = updates->type.dtype;
  const auto axis = node.get<std::int64_t>("axis");
  const Expr& size = node.get<Exprs>("size")[0];
  const auto rank = static_cast<std::int64_t>(updates->type.rank()), count = static_cast<std::int64_t>(indices->type.rank());
  Ints perm = from_to(axis, axis + count);
  for (const std::int64_t i : from_to(0, axis)) perm.push_back(i);
  for (const std::int64_t i : from_to(axis + count, rank)) perm.push_back(i);
  const Expr rows = indices->type.elements();
  const Shape& shape = updates->type.shape;
  Shape around(shape.begin(), shape.begin() + axis);
  around.insert(around.end(), shape.begin() + axis + count, shape.end());
  Value* columns = b.reshape(b.transpose(updates, perm), {rows, product(around)});
  Value* row = b.reshape(indices, {rows, Expr(1)});
  const DType of_index = row->type.dtype;
  Value* wrapped = b.where(b.call("less", {row, b.scalar(of_index, 0)}), b.add(row, b.exprs({size}, {}, of_index)), row);
  Value* one_hot = b.cast(b.call("equal", {wrapped, b.iota({Expr(1), size}, 1, of_index)}), dtype);
  Value* sums = b.matmul(one_hot, columns, true, false);
  Shape parts{size};
  parts.insert(parts.end(), around.begin(), around.end());
  Ints back;
  for (const std::int64_t i : from_to(1, axis + 1)) back.push_back(i);
  back.push_back(0);
  for (const std::int64_t i : from_to(axis + 1, static_cast<std::int64_t>(parts.size()))) back.push_back(i);
  return b.transpose(b.reshape(sums, parts), back);
}

struct Row {
  std::string_view op;
  Value* (*expand)(Builder& b, const Node& node);
};

constexpr Row kRows[] = {{"conv_transpose", expand_conv_transpose}, {"conv_weight_grad", expand_conv_weight_grad},
                         {"max_pool_index", expand_max_pool_index}, {"max_pool_grad", expand_max_pool_grad},
                         {"avg_pool_grad", expand_avg_pool_grad},   {"scatter_add", expand_scatter_add}};

void expand_moments(Graph& graph, Builder& b, Node* node) {
  Value* x = node->inputs[0];
  const auto& axes = node->get<Ints>("axes");
  Value* mean = b.reduce("reduce_mean", x, axes, true);
  Value* centred = b.sub(x, mean);
  graph.replace_all_uses(node->output(0), mean);
  graph.replace_all_uses(node->output(1), b.reduce("reduce_mean", b.mul(centred, centred), axes, true));
}

}  // namespace

bool expand_gradients(Graph& graph, const PassContext&) {
  bool changed = false;
  for (Node* node : graph.nodes()) {
    Builder b(graph, node->source);
    if (node->op->name == "moments") {
      expand_moments(graph, b, node);
      changed = true;
    }
    const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == node->op->name; });
    if (row == std::end(kRows)) continue;
    graph.replace_all_uses(node->output(), row->expand(b, *node));
    changed = true;
  }
  if (changed) {
    graph.sort();
    graph.erase_dead();
  }
  return changed;
}

}  // namespace oclc

// Gradients of pools as sums over the taps of their windows.
#include <algorithm>
#include <cmath>

#include "compiler/passes/gradients/expand_gradients.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

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

}  // namespace

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

Value* expand_avg_pool_grad(Builder& b, const Node& node) {
  Value* dy = node.inputs[0];
  const std::size_t rank = dy->type.rank();
  const Windows windows(node);
  const bool no_padding = std::all_of(windows.pads.begin(), windows.pads.end(), [](std::int64_t p) { return p == 0; }) &&
                          node.get_or<std::int64_t>("ceil_mode", 0) == 0;
  if (no_padding) {
    // All taps count, or those of the only window in data that are shorter.
    const auto& kernel = node.get<Ints>("kernel");
    const auto& sizes = node.get<Exprs>("input_shape");
    Expr count(1);
    for (std::size_t i = 0; i < kernel.size(); ++i)
      count *= min(Expr(kernel[i]), ceil_div(sizes[i], Expr(windows.dilations[i])));
    dy = count.is_constant() ? b.mul(dy, 1.0 / static_cast<double>(count.value()))
                             : b.div(dy, b.cast(b.exprs({count}, {}), dy->type.dtype));
  } else {
    for (std::size_t i = 0; i + 2 < rank; ++i)
      dy = b.div(dy, b.cast(tap_counts(b, node, i, dy->type.shape[i + 2], rank), dy->type.dtype));
  }
  return sum_of_taps(b, node, [&](std::int64_t) { return dy; });
}

}  // namespace oclc

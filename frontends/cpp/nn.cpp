#include "frontends/cpp/nn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/support/error.h"

namespace oclc::nn {
namespace {

// One value per spatial axis of x, the default where none are given.
Ints per_axis(const Network& net, const Tensor& x, const char* what, const Ints& list, std::int64_t fallback) {
  const std::size_t axes = x.rank() < 2 ? 0 : x.rank() - 2;
  if (list.empty()) return Ints(axes, fallback);
  if (list.size() != axes) {
    throw CompileError({.stage = "network",
                        .node = net.path(),
                        .wanted = fmt::format("{} {} values for {}", axes, what, x.value()->type.text()),
                        .found = fmt::format("[{}]", fmt::join(list, ", "))});
  }
  return list;
}

Ints both_ends(const Ints& padding) {
  Ints pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

PoolOptions pool_options(const Tensor& x, const Pool& options) {
  const Network& net = x.network();
  return {.kernel = options.kernel,
          .strides = options.stride.empty() ? options.kernel : per_axis(net, x, "stride", options.stride, 1),
          .pads = both_ends(per_axis(net, x, "padding", options.padding, 0)),
          .ceil_mode = options.ceil_mode,
          .count_include_pad = true};
}

// x[.., i] times rows [from, from + count) of weight and bias.
Tensor project(const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t from, std::int64_t count) {
  if (weight.size(0) == count) return matmul(x, weight, false, true) + bias;
  return matmul(x, weight.slice(0, from, count), false, true) + bias.slice(0, from, count);
}

// [N, T, E] to [N, heads, T, E / heads]
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return x.reshape({x.dim(0), x.dim(1), heads, x.size(2) / heads}).transpose({0, 2, 1, 3});
}

// 0 where position j may be seen from position i of the last T positions of S, else minus infinity: [T, S].
Tensor causal_mask(Network& net, DType dtype, const Expr& t, const Expr& s) {
  Builder& b = net.builder();
  Value* row = b.iota({t, 1}, 0, DType::i64, s - t);
  Value* column = b.iota({1, s}, 1, DType::i64);
  Value* visible = b.call("less_equal", {column, row});
  return net.tensor(b.where(visible, b.scalar(dtype, 0), b.scalar(dtype, -std::numeric_limits<double>::infinity())));
}

}  // namespace

Tensor linear(Network& net, std::string_view name, const Tensor& x, std::int64_t features, bool bias) {
  const Network::Scope scope(net, name);
  net.operand("linear", x);
  const Tensor y = matmul(x, net.parameter("weight", {features, x.size(-1)}), false, true);
  return bias ? y + net.parameter("bias", {features}) : y;
}

Tensor conv(Network& net, std::string_view name, const Tensor& x, std::int64_t channels, const Conv& options) {
  const Network::Scope scope(net, name);
  net.operand("conv", x);
  Ints shape{channels, x.size(1) / std::max<std::int64_t>(options.groups, 1)};
  const Ints kernel = per_axis(net, x, "kernel", options.kernel, 1);
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const Tensor weight = net.parameter("weight", shape);
  const Tensor bias = options.bias ? net.parameter("bias", {channels}) : Tensor();
  return net.tensor(net.builder().conv(x.value(), weight.value(), bias.value(),
                                       {.strides = per_axis(net, x, "stride", options.stride, 1),
                                        .dilations = per_axis(net, x, "dilation", options.dilation, 1),
                                        .pads = both_ends(per_axis(net, x, "padding", options.padding, 0)),
                                        .group = options.groups}));
}

Tensor batch_norm(Network& net, std::string_view name, const Tensor& x, double epsilon, double momentum) {
  const Network::Scope scope(net, name);
  net.operand("batch_norm", x);
  const Ints channels{x.size(1)};
  if (net.use() == Use::training) {
    std::vector<Value*> operands{x.value()};
    for (const char* part : {"weight", "bias", "running_mean", "running_var"})
      operands.push_back(net.parameter(part, channels).value());
    return net.tensor(
        net.builder().call("batch_norm", std::move(operands), {{"epsilon", epsilon}, {"momentum", 1 - momentum}}));
  }
  const Tensor scale = net.parameter("weight", channels) / apply("sqrt", {net.parameter("running_var", channels) + epsilon});
  const Tensor shift = net.parameter("bias", channels) - net.parameter("running_mean", channels) * scale;
  Shape broadcast(x.rank() - 1, Expr(1));
  broadcast[0] = x.dim(1);
  return apply("fma", {x, scale.reshape(broadcast), shift.reshape(broadcast)});
}

Tensor layer_norm(Network& net, std::string_view name, const Tensor& x, double epsilon) {
  const Network::Scope scope(net, name);
  net.operand("layer_norm", x);
  const Ints width{x.size(-1)};
  return net.tensor(net.builder().layer_norm(x.value(), net.parameter("weight", width).value(),
                                             net.parameter("bias", width).value(), -1, epsilon));
}

Tensor dropout(const Tensor& x, double ratio) {
  Network& net = x.network();
  if (net.use() == Use::inference || ratio == 0) return x;
  return net.tensor(net.builder().call("dropout", {x.value()}, {{"ratio", ratio}}));
}

Tensor embedding(Network& net, std::string_view name, const Tensor& indices, std::int64_t count, std::int64_t width) {
  const Network::Scope scope(net, name);
  net.operand("embedding", indices);
  return net.tensor(net.builder().gather(net.parameter("weight", {count, width}).value(), indices.value(), 0));
}

Tensor multi_head_attention(Network& net, std::string_view name, const Tensor& query, const Tensor& key, const Tensor& value,
                            const Attention& options) {
  const Network::Scope scope(net, name);
  for (const Tensor* x : {&query, &key, &value}) net.operand("multi_head_attention", *x);
  if (options.mask) net.operand("multi_head_attention", options.mask);
  const std::int64_t width = query.size(-1);
  if (options.heads < 1 || width % options.heads != 0) {
    throw CompileError({.stage = "network",
                        .node = net.path(),
                        .wanted = fmt::format("a number of heads that divides {}", width),
                        .found = std::to_string(options.heads)});
  }
  const Tensor weight = net.parameter("in_proj_weight", {3 * width, width}), bias = net.parameter("in_proj_bias", {3 * width});
  Tensor q, k, v;
  if (query.value() == key.value() && key.value() == value.value()) {
    const Tensor all = project(query, weight, bias, 0, 3 * width);
    q = all.slice(2, 0, width), k = all.slice(2, width, width), v = all.slice(2, 2 * width, width);
  } else {
    q = project(query, weight, bias, 0, width), k = project(key, weight, bias, width, width),
    v = project(value, weight, bias, 2 * width, width);
  }
  q = split_heads(q, options.heads), k = split_heads(k, options.heads), v = split_heads(v, options.heads);
  const double scale = 1 / std::sqrt(static_cast<double>(width) / static_cast<double>(options.heads));
  Tensor scores = matmul(q, k, false, true) * scale;
  if (options.causal) scores = scores + causal_mask(net, query.dtype(), query.dim(1), key.dim(1));
  if (options.mask) scores = scores + options.mask;
  const Tensor mixed = matmul(softmax(scores), v).transpose({0, 2, 1, 3}).reshape({query.dim(0), query.dim(1), width});
  return linear(net, "out_proj", mixed, width);
}

Tensor self_attention(Network& net, std::string_view name, const Tensor& x, const Attention& options) {
  return multi_head_attention(net, name, x, x, x, options);
}

Tensor max_pool(const Tensor& x, const Pool& options) {
  Network& net = x.network();
  return net.tensor(net.builder().max_pool(x.value(), pool_options(x, options)));
}

Tensor avg_pool(const Tensor& x, const Pool& options) {
  Network& net = x.network();
  return net.tensor(net.builder().avg_pool(x.value(), pool_options(x, options)));
}

Tensor global_avg_pool(const Tensor& x) {
  Ints axes;
  for (std::size_t i = 2; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return x.mean(axes);
}

Tensor flatten(const Tensor& x, std::int64_t axis) {
  x.dim(axis);  // refuses an axis out of range
  const auto first = static_cast<std::ptrdiff_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.rank()) : axis);
  Shape shape(x.shape().begin(), x.shape().begin() + first);
  shape.push_back(product(std::span(x.shape()).subspan(static_cast<std::size_t>(first))));
  return x.reshape(std::move(shape));
}

}  // namespace oclc::nn

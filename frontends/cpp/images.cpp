// Layers that change the size of images: transposed convolution, upsampling, padding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/support/error.h"
#include "frontends/cpp/nn.h"

namespace oclc::nn {
namespace {

Ints of_axes(const Tensor& x, const char* what, const Ints& list, std::int64_t otherwise) {
  const std::size_t axes = x.rank() < 2 ? 0 : x.rank() - 2;
  if (list.empty()) return Ints(axes, otherwise);
  if (list.size() == axes) return list;
  throw CompileError({.stage = "network",
                      .node = x.network().path(),
                      .wanted = fmt::format("{} {} values for {}", axes, what, x.value()->type.text()),
                      .found = fmt::format("[{}]", fmt::join(list, ", "))});
}

void expect_positive(const Tensor& x, const char* what, const Ints& list) {
  if (std::all_of(list.begin(), list.end(), [](std::int64_t v) { return v >= 1; })) return;
  throw CompileError({.stage = "network",
                      .node = x.network().path(),
                      .wanted = fmt::format("{} values of at least 1", what),
                      .found = fmt::format("[{}]", fmt::join(list, ", "))});
}

// x at twice, thrice, .. the size along one axis, linear between the middles of the old elements; outside of them constant.
Tensor stretched(const Tensor& x, std::int64_t axis, std::int64_t scale) {
  Network& net = x.network();
  const std::int64_t size = x.size(axis);
  HostTensor below(DType::i64, {size * scale}), above(DType::i64, {size * scale}), share(DType::f32, {size * scale});
  for (std::int64_t i = 0; i < size * scale; ++i) {
    const double at =
        std::clamp((static_cast<double>(i) + 0.5) / static_cast<double>(scale) - 0.5, 0.0, static_cast<double>(size - 1));
    const auto low = static_cast<std::int64_t>(at);
    below.set(i, static_cast<double>(low));
    above.set(i, static_cast<double>(std::min(low + 1, size - 1)));
    share.set(i, at - static_cast<double>(low));
  }
  Builder& b = net.builder();
  const auto taken = [&](HostTensor places) { return net.tensor(b.gather(x.value(), b.constant(std::move(places)), axis)); };
  Shape column(x.rank() - static_cast<std::size_t>(axis), Expr(1));
  column[0] = size * scale;
  const Tensor low = taken(std::move(below)), high = taken(std::move(above));
  return apply("fma", {high - low, net.constant(std::move(share)).cast(x.dtype()).reshape(std::move(column)), low});
}

}  // namespace

Tensor conv_transpose(Network& net, std::string_view name, const Tensor& x, std::int64_t channels,
                      const ConvTranspose& options) {
  const Network::Scope scope(net, name);
  net.operand("conv_transpose", x);
  const Ints kernel = of_axes(x, "kernel", options.kernel, 1), stride = of_axes(x, "stride", options.stride, 1),
             dilation = of_axes(x, "dilation", options.dilation, 1), padding = of_axes(x, "padding", options.padding, 0),
             extra = of_axes(x, "output padding", options.output_padding, 0);
  expect_positive(x, "kernel", kernel), expect_positive(x, "stride", stride), expect_positive(x, "dilation", dilation);
  if (options.groups < 1 || channels % options.groups != 0) {
    throw CompileError({.stage = "network",
                        .node = net.path(),
                        .wanted = fmt::format("a number of groups that divides {}", channels),
                        .found = std::to_string(options.groups)});
  }
  Ints shape{x.size(1), channels / options.groups};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  Ints pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  std::vector<Expr> sizes;
  for (std::size_t i = 0; i < kernel.size(); ++i)
    sizes.push_back((x.dim(static_cast<std::int64_t>(i) + 2) - 1) * Expr(stride[i]) +
                    Expr((kernel[i] - 1) * dilation[i] + 1 + extra[i] - 2 * padding[i]));
  const Tensor y = net.tensor(net.builder().call(
      "conv_transpose", {x.value(), net.parameter("weight", shape).value()},
      {{"strides", stride}, {"dilations", dilation}, {"pads", pads}, {"group", options.groups}, {"output_shape", sizes}}));
  if (!options.bias) return y;
  Shape column(kernel.size() + 1, Expr(1));
  column[0] = channels;
  return y + net.parameter("bias", {channels}).reshape(std::move(column));
}

Tensor upsample_nearest(const Tensor& x, const Ints& scale) {
  const Ints by = of_axes(x, "scale", scale, 2);
  expect_positive(x, "scale", by);
  Builder& b = x.network().builder();
  // Each axis is followed by one along which its elements repeat.
  Shape apart{x.dim(0), x.dim(1)}, repeated = apart, joined = apart;
  for (std::size_t i = 0; i < by.size(); ++i) {
    const Expr size = x.dim(static_cast<std::int64_t>(i) + 2);
    apart.insert(apart.end(), {size, Expr(1)});
    repeated.insert(repeated.end(), {size, Expr(by[i])});
    joined.push_back(size * Expr(by[i]));
  }
  return x.network().tensor(
      b.reshape(b.expand(b.reshape(x.value(), std::move(apart)), std::move(repeated)), std::move(joined)));
}

Tensor upsample_linear(const Tensor& x, const Ints& scale) {
  const Ints by = of_axes(x, "scale", scale, 2);
  expect_positive(x, "scale", by);
  Tensor y = x;
  for (std::size_t i = 0; i < by.size(); ++i) {
    if (by[i] != 1) y = stretched(y, static_cast<std::int64_t>(i) + 2, by[i]);
  }
  return y;
}

Tensor pad(const Tensor& x, const Ints& before, const Ints& after, double value) {
  if (before.size() != x.rank() || after.size() != x.rank()) {
    throw CompileError({.stage = "network",
                        .node = x.network().path(),
                        .op = "pad",
                        .wanted = fmt::format("{} sizes before and after", x.rank()),
                        .found = fmt::format("[{}] and [{}]", fmt::join(before, ", "), fmt::join(after, ", "))});
  }
  return x.network().tensor(
      x.network().builder().pad(x.value(), {before.begin(), before.end()}, {after.begin(), after.end()}, value));
}

}  // namespace oclc::nn

// Norms over groups of channels, and RMS norm.
#include <fmt/format.h>

#include "compiler/support/error.h"
#include "frontends/cpp/nn.h"

namespace oclc::nn {
namespace {

// [C] to [C, 1, ..], which broadcasts over x[N, C, spatial..].
Tensor per_channel(const Tensor& x, const Tensor& v) {
  Shape shape(x.rank() - 1, Expr(1));
  shape[0] = x.dim(1);
  return v.reshape(std::move(shape));
}

// (x - mean) / sqrt(variance + epsilon) of each group of channels of each sample.
Tensor standardized(const Tensor& x, std::int64_t groups, double epsilon) {
  Network& net = x.network();
  const Shape shape = x.shape();
  const Expr rest = floor_div(product(std::span(shape).subspan(1)), Expr(groups));
  Builder& b = net.builder();
  Value* ones = b.expand(b.scalar(x.dtype(), 1), {rest});
  return net.tensor(b.reshape(b.layer_norm(b.reshape(x.value(), {shape[0], groups, rest}), ones, nullptr, -1, epsilon), shape));
}

void expect_channels(const Network& net, const Tensor& x) {
  if (x.rank() >= 3) return;
  throw CompileError({.stage = "network",
                      .node = net.path(),
                      .wanted = "a tensor [N, C, spatial..] of rank 3 or more",
                      .found = x.value()->type.text()});
}

}  // namespace

Tensor rms_norm(Network& net, std::string_view name, const Tensor& x, double epsilon) {
  const Network::Scope scope(net, name);
  net.operand("rms_norm", x);
  return net.tensor(net.builder().rms_norm(x.value(), net.parameter("weight", {x.size(-1)}).value(), -1, epsilon));
}

Tensor group_norm(Network& net, std::string_view name, const Tensor& x, std::int64_t groups, double epsilon) {
  const Network::Scope scope(net, name);
  net.operand("group_norm", x);
  expect_channels(net, x);
  const std::int64_t channels = x.size(1);
  if (groups < 1 || channels % groups != 0) {
    throw CompileError({.stage = "network",
                        .node = net.path(),
                        .wanted = fmt::format("a number of groups that divides {} channels", channels),
                        .found = std::to_string(groups)});
  }
  return apply("fma", {standardized(x, groups, epsilon), per_channel(x, net.parameter("weight", {channels})),
                       per_channel(x, net.parameter("bias", {channels}))});
}

Tensor instance_norm(const Tensor& x, double epsilon) {
  expect_channels(x.network(), x);
  return standardized(x, x.size(1), epsilon);
}

}  // namespace oclc::nn

// Comparisons, selection, and rotary positions.
#include <cmath>

#include "compiler/support/error.h"
#include "frontends/cpp/nn.h"

namespace oclc::nn {

Tensor less(const Tensor& a, const Tensor& b) { return apply("less", {a, b}); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return apply("less_equal", {a, b}); }
Tensor greater(const Tensor& a, const Tensor& b) { return apply("less", {b, a}); }
Tensor greater_equal(const Tensor& a, const Tensor& b) { return apply("less_equal", {b, a}); }
Tensor equal(const Tensor& a, const Tensor& b) { return apply("equal", {a, b}); }
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) { return apply("where", {condition, a, b}); }

Tensor rotary(const Tensor& x, double base, const Expr& first) {
  Network& net = x.network();
  if (x.rank() < 2 || x.size(-1) % 2 != 0) {
    throw CompileError({.stage = "network",
                        .node = net.path(),
                        .op = "rotary",
                        .wanted = "a tensor [.., T, E] with an even E",
                        .found = x.value()->type.text()});
  }
  const std::int64_t half = x.size(-1) / 2;
  HostTensor speeds(DType::f32, {1, half});
  for (std::int64_t i = 0; i < half; ++i) speeds.set(i, std::pow(base, -static_cast<double>(i) / static_cast<double>(half)));
  Builder& b = net.builder();
  const Tensor place = net.tensor(b.cast(b.iota({x.dim(-2), 1}, 0, DType::i64, first), DType::f32));
  const Tensor angle = place * net.constant(std::move(speeds));  // [T, E / 2]
  const Tensor cosine = apply("cos", {angle}).cast(x.dtype()), sine = apply("sin", {angle}).cast(x.dtype());
  const Tensor a = x.slice(-1, 0, half), c = x.slice(-1, half, half);
  return concat({a * cosine - c * sine, c * cosine + a * sine}, -1);
}

}  // namespace oclc::nn

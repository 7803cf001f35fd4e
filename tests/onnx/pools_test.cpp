// Pools whose windows overhang their data, lie wholly in the padding or are longer than the data, against loops over the taps,
// with sizes that are known and with sizes that are open.
#include <doctest/doctest.h>

#include <cmath>

#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::pools_test {

using Sizes = std::vector<std::int64_t>;

struct Pool {
  std::int64_t kernel, stride = 1, dilation = 1, before = 0, after = 0;
  bool ceil = false;

  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
  // As ONNX Runtime has it: the division rounds to zero, and with `ceil` the last window starts inside.
  std::int64_t positions(std::int64_t size) const {
    const std::int64_t span = size + before + after - extent();
    if (!ceil) return span / stride + 1;
    const auto up = static_cast<std::int64_t>(std::ceil(static_cast<double>(span) / static_cast<double>(stride))) + 1;
    return (up - 1) * stride >= size + before ? up - 1 : up;
  }
};

constexpr Pool kPools[] = {
    {2, 2},                 // cut: one element is left of two
    {3, 3},                 //
    {2, 2, 1, 0, 0, true},  // overhangs
    {3, 2, 1, 1, 1, true},  //
    {3, 2, 1, 1, 1},        //
    {2, 1, 4, 2, 2},        // taps before and behind the data
    {2, 3, 5, 4, 4},        //
    {2, 2, 3, 1, 2, true},  //
    {1, 2, 1, 0, 0},        //
};

enum class Kind { max, average, average_with_padding, root };
constexpr Kind kKinds[] = {Kind::max, Kind::average, Kind::average_with_padding, Kind::root};

// Of the window at `position` of a row of `size` numbers.
double pooled(Kind kind, const Pool& p, const HostTensor& x, std::int64_t row, std::int64_t size, std::int64_t position) {
  double largest = -INFINITY, sum = 0, squares = 0, inside = 0, padded = 0;
  for (std::int64_t k = 0; k < p.kernel; ++k) {
    const std::int64_t at = position * p.stride - p.before + k * p.dilation;
    padded += at < size + p.after ? 1 : 0;
    if (at < 0 || at >= size) continue;
    const double v = x.at(row * size + at);
    largest = std::max(largest, v);
    sum += v;
    squares += v * v;
    ++inside;
  }
  if (kind == Kind::max) return largest;
  if (kind == Kind::root) return std::sqrt(squares);
  return inside == 0 ? 0 : sum / (kind == Kind::average ? inside : padded);
}

Writer model(Kind kind, const Pool& p, bool open) {
  Writer w(19);
  open ? w.input("x", {"n", 2, "length"}) : w.input("x", {2, 2, 1});
  w.output("y");
  const char* op = kind == Kind::max ? "MaxPool" : kind == Kind::root ? "LpPool" : "AveragePool";
  NodeProto& node = w.node(op, {"x"}, {"y"}, "pool");
  set_list(node, "kernel_shape", {p.kernel});
  set_list(node, "strides", {p.stride});
  set_list(node, "dilations", {p.dilation});
  set_list(node, "pads", {p.before, p.after});
  set_int(node, "ceil_mode", p.ceil ? 1 : 0);
  if (kind == Kind::average_with_padding) set_int(node, "count_include_pad", 1);
  return w;
}

void check(const HostTensor& y, Kind kind, const Pool& p, const HostTensor& x) {
  const std::int64_t size = x.shape()[2], positions = p.positions(size);
  REQUIRE(y.shape() == Sizes{x.shape()[0], x.shape()[1], positions});
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const double wanted = pooled(kind, p, x, i / positions, size, i % positions);
    CHECK((y.at(i) == wanted || std::fabs(y.at(i) - wanted) <= 1e-6));  // roundings of sums of numbers below 2
  }
}

TEST_CASE("Pools beyond their data, open sizes") {
  for (const Kind kind : kKinds) {
    for (const Pool& p : kPools) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(p.kernel);
      CAPTURE(p.stride);
      CAPTURE(p.dilation);
      PlanRunner runner(std::shared_ptr<Module>(model(kind, p, true).import()), default_options());
      for (const std::int64_t size : {1, 2, 3, 4, 7}) {
        const std::int64_t span = size + p.before + p.after - p.extent();
        if (span <= -p.stride) continue;
        CAPTURE(size);
        const HostTensor x = random_tensor(DType::f32, {2, 2, size}, static_cast<unsigned>(size), -2, 1);
        check(runner.run(std::vector<HostTensor>{x})[0], kind, p, x);
      }
    }
  }
}

TEST_CASE("Pools beyond their data, known sizes, and what no window reaches") {
  for (const Kind kind : kKinds) {
    for (const Pool& p : kPools) {
      if (1 + p.before + p.after - p.extent() <= -p.stride) {
        CHECK_THROWS_AS(model(kind, p, false).import(), CompileError);
        continue;
      }
      const HostTensor x = random_tensor(DType::f32, {2, 2, 1}, 7, -2, 1);
      PlanRunner runner(std::shared_ptr<Module>(model(kind, p, false).import()), default_options());
      check(runner.run(std::vector<HostTensor>{x})[0], kind, p, x);
    }
  }
}

// A classifier of pictures that are smaller than its pools shrink: the mean at the end is over one element, not over none.
TEST_CASE("A small picture goes through pools that halve it") {
  Writer w;
  w.input("x", {"n", 1, "height", "width"}).output("y");
  std::string last = "x";
  for (int i = 0; i < 3; ++i) {
    const std::string next = "p" + std::to_string(i);
    NodeProto& node = w.node("MaxPool", {last}, {next});
    set_list(node, "kernel_shape", {2, 2});
    set_list(node, "strides", {2, 2});
    last = next;
  }
  w.node("GlobalAveragePool", {last}, {"y"}, "mean");
  PlanRunner runner(std::shared_ptr<Module>(w.import()), default_options());
  const auto mean = [&](std::int64_t height, std::int64_t width) {
    HostTensor x(DType::f32, {1, 1, height, width});
    for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i + 1));
    return runner.run(std::vector<HostTensor>{x})[0].at(0);
  };
  CHECK(mean(2, 2) == 4);  // 2x2, 1x1, 1x1
  CHECK(mean(4, 2) == 8);
  CHECK(mean(16, 8) == 96);  // of 64 and 128
  CHECK(mean(3, 8) == 16);   // the third row lies behind the last window
}

}  // namespace oclc::test::pools_test

// Images stripe by stripe: which kernels become a loop over stripes of rows, and that they compute what they did.
#include "compiler/kernels/stripes.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

CompileOptions cpu_options(std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target("cpu");
  options.disabled = std::move(disabled);
  return options;
}

// Channels last: a product that makes many channels of few, a mean over 3 rows, and a sum over the channels.
struct Image {
  PlanCheck check;
  std::int64_t height, width = 64, channels = 96;
  Value *x, *wide;

  explicit Image(std::int64_t h) : height(h) {
    x = check.input({height, width, 8});
    Value* weights = check.b.constant(random_tensor(DType::f32, {8, channels}, 3, -1, 1));
    wide = check.b.relu(check.b.matmul(x, weights));
  }
  // Row r of the result reads rows stride * r - 1 .. stride * r + 1, zero outside.
  Value* near_rows(std::int64_t stride) {
    Builder& b = check.b;
    Value* padded = b.pad(wide, {1, 0, 0}, {1, 0, 0}, 0);
    Value* sum = nullptr;
    for (std::int64_t i = 0; i < 3; ++i) {
      Value* part =
          b.slice(padded, {Expr(i), Expr(0), Expr(0)}, {Expr(height / stride), Expr(width), Expr(channels)}, {stride, 1, 1});
      sum = sum == nullptr ? part : b.add(b.mul(sum, 0.5), part);
    }
    return b.reduce("reduce_sum", sum, {2}, false);
  }
  Compiled compiled(std::vector<std::string> disabled = {}) const {
    return compile(module_of(copy_graph(*check.graph)), cpu_options(std::move(disabled)));
  }
  std::vector<HostTensor> run(std::vector<std::string> disabled = {}) const {
    return PlanRunner(module_of(copy_graph(*check.graph)), cpu_options(std::move(disabled))).run(check.inputs, {});
  }
  void same() const {
    const auto found = run();
    CHECK(oclc::difference(found, run({"stripes"}), 0) == "");
    CHECK(oclc::difference(found, evaluate(*check.graph, check.inputs, {}), 5e-6) == "");
  }
};

const Step* loop_of(const Compiled& c) {
  const auto& steps = c.schedule.entries[0].steps;
  const auto at = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.is_loop(); });
  return at == steps.end() ? nullptr : &*at;
}

TEST_CASE("what kernels hand on row by row takes the memory of a stripe and of its neighbouring rows") {
  for (const std::int64_t stride : {1, 2}) {
    CAPTURE(stride);
    Image net(224);
    net.check.out("y", net.near_rows(stride));
    const Compiled c = net.compiled();
    const Step* loop = loop_of(c);
    REQUIRE(loop != nullptr);
    CHECK(loop->body.size() == 2);
    CHECK(c.plan.launches == 1);
    CHECK(loop_of(net.compiled({"stripes"})) == nullptr);
    const std::int64_t rows = 224 / loop->trip.value() + (stride == 1 ? 2 : 1);
    const auto& buffers = c.schedule.buffers;
    CHECK(std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.elements == Expr(rows * 64 * 96); }));
    net.same();
  }
}

TEST_CASE("what is read outside of the loop is computed once: its readers of later rows stay outside") {
  Image net(224);
  net.check.out("y", net.near_rows(1));
  net.check.out("wide", net.wide);
  CHECK(loop_of(net.compiled()) == nullptr);
  net.same();
}

TEST_CASE("a kernel that reads all rows stays outside") {
  Image net(224);
  net.check.out("y", net.check.b.reduce("reduce_sum", net.wide, {0}, false));
  CHECK(loop_of(net.compiled()) == nullptr);
}

TEST_CASE("rows that the caches hold gain nothing") {
  Image net(28);
  net.check.out("y", net.near_rows(1));
  CHECK(loop_of(net.compiled()) == nullptr);
}

TEST_CASE("a prime number of rows has no stripes") {
  Image net(223);
  net.check.out("y", net.near_rows(1));
  CHECK(loop_of(net.compiled()) == nullptr);
}

}  // namespace
}  // namespace oclc::test

// Images tile of rows by tile of rows: which kernels become a loop over tiles of rows, and that they compute what they did.
#include "compiler/schedule/fuse_row_tiles.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

CompileOptions row_tile_options(std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target("cpu");
  options.disabled = std::move(disabled);
  return options;
}

// Channels last: a product that makes many channels of few, a mean over 3 rows, and a sum over the channels.
// With `images`, a batch of it.
struct Image {
  PlanCheck check;
  std::int64_t height, width = 64, channels = 96, images;
  Value *x, *wide;

  explicit Image(std::int64_t h, std::int64_t n = 0) : height(h), images(n) {
    x = check.input(n == 0 ? Ints{height, width, 8} : Ints{n, height, width, 8});
    Value* weights = check.b.constant(random_tensor(DType::f32, {8, channels}, 3, -1, 1));
    wide = check.b.relu(check.b.matmul(x, weights));
  }
  // Row r of the result reads rows stride * r - 1 .. stride * r + 1, zero outside: sums over the channels, unless all are
  // wanted.
  Value* near_rows(std::int64_t stride, bool all_channels = false) {
    Builder& b = check.b;
    const auto with_images = [&](std::int64_t number, std::vector<Expr> rest) {
      if (images > 0) rest.insert(rest.begin(), Expr(number));
      return rest;
    };
    Value* padded = b.pad(wide, with_images(0, {1, 0, 0}), with_images(0, {1, 0, 0}), 0);
    Value* sum = nullptr;
    for (std::int64_t i = 0; i < 3; ++i) {
      Ints steps = {stride, 1, 1};
      if (images > 0) steps.insert(steps.begin(), 1);
      Value* part = b.slice(padded, with_images(0, {Expr(i), Expr(0), Expr(0)}),
                            with_images(images, {Expr(height / stride), Expr(width), Expr(channels)}), steps);
      sum = sum == nullptr ? part : b.add(b.mul(sum, 0.5), part);
    }
    return all_channels ? sum : b.reduce("reduce_sum", sum, {images > 0 ? 3 : 2}, false);
  }
  Compiled compiled(std::vector<std::string> disabled = {}) const {
    return compile(module_of(copy_graph(*check.graph)), row_tile_options(std::move(disabled)));
  }
  std::vector<HostTensor> run(std::vector<std::string> disabled = {}) const {
    return PlanRunner(module_of(copy_graph(*check.graph)), row_tile_options(std::move(disabled))).run(check.inputs, {});
  }
  void same() const {
    const auto found = run();
    CHECK(oclc::difference(found, run({"fuse_row_tiles", "fuse_over_batch"}), 0) == "");
    CHECK(oclc::difference(found, evaluate(*check.graph, check.inputs, {}), 5e-6) == "");
  }
};

const LoopStep* loop_among(std::span<const Step> steps) {
  for (const Step& step : steps) {
    if (const auto* loop = step.as<LoopStep>()) return loop;
    if (const LoopStep* inner = step.is<MegakernelStep>() ? loop_among(step.body()) : nullptr) return inner;
  }
  return nullptr;
}

const LoopStep* row_tile_loop(const Compiled& c) { return loop_among(c.schedule.entries[0].steps); }

bool has_buffer(const Compiled& c, std::int64_t floats) {
  const auto& buffers = c.schedule.buffers;
  return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.elements == Expr(floats); });
}

TEST_CASE("what kernels hand on row by row takes the memory of a tile and of its neighbouring rows") {
  for (const std::int64_t stride : {1, 2}) {
    CAPTURE(stride);
    Image net(224);
    net.check.out("y", net.near_rows(stride));
    const Compiled c = net.compiled();
    const LoopStep* loop = row_tile_loop(c);
    REQUIRE(loop != nullptr);
    CHECK(loop->body.size() == 2);
    CHECK(c.plan.launches == 1);
    CHECK(row_tile_loop(net.compiled({"fuse_row_tiles", "fuse_over_batch"})) == nullptr);
    const std::int64_t rows = 224 / loop->trip.value() + (stride == 1 ? 2 : 1);
    CHECK(loop->slots == 4);
    CHECK(has_buffer(c, loop->slots * ((rows * 64 * 96 + 1023) / 1024 * 1024)));
    net.same();
  }
}

TEST_CASE("images of a batch go row tile by row tile, one after another") {
  for (const std::int64_t stride : {1, 2}) {
    CAPTURE(stride);
    Image net(224, 3);
    net.check.out("y", net.near_rows(stride));
    const Compiled c = net.compiled();
    const LoopStep* loop = row_tile_loop(c);
    REQUIRE(loop != nullptr);
    CHECK(loop->body.size() == 2);
    CHECK(c.plan.launches == 1);
    REQUIRE(loop->trip.value() % 3 == 0);
    const std::int64_t rows = 224 / (loop->trip.value() / 3) + (stride == 1 ? 2 : 1);
    CHECK(has_buffer(c, loop->slots * ((rows * 64 * 96 + 1023) / 1024 * 1024)));
    net.same();
  }
}

TEST_CASE("what is read outside of the loop is computed once: its readers of later rows stay outside") {
  Image net(224);
  net.check.out("y", net.near_rows(1));
  net.check.out("wide", net.wide);
  CHECK(row_tile_loop(net.compiled()) == nullptr);
  net.same();
}

TEST_CASE("a kernel that reads all rows stays outside") {
  Image net(224);
  net.check.out("y", net.check.b.reduce("reduce_sum", net.wide, {0}, false));
  CHECK(row_tile_loop(net.compiled()) == nullptr);
}

TEST_CASE("rows that the caches hold gain nothing") {
  Image net(28);
  net.check.out("y", net.near_rows(1));
  CHECK(row_tile_loop(net.compiled()) == nullptr);
}

TEST_CASE("a value that the caches hold goes row tile by row tile where its reader's results push it out") {
  Image net(40);
  net.check.out("y", net.near_rows(1, true));
  const Compiled c = net.compiled();
  const LoopStep* loop = row_tile_loop(c);
  REQUIRE(loop != nullptr);
  CHECK(loop->slots > 0);
  net.same();
}

TEST_CASE("a prime number of rows has no row tiles") {
  Image net(223);
  net.check.out("y", net.near_rows(1));
  CHECK(row_tile_loop(net.compiled()) == nullptr);
}

}  // namespace
}  // namespace oclc::test

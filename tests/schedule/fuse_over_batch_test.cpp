// Batches image by image: which kernels become a loop over images, and that they compute what they did.
#include "compiler/schedule/fuse_over_batch.h"
#include "compiler/kernels/memory_access.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/schedule/megakernel.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

CompileOptions cpu_options(std::vector<std::string> disabled = {}, int cores = 2) {
  CompileOptions options = default_options();
  options.target = find_target("cpu");
  options.target.compute_units = cores;
  options.disabled = std::move(disabled);
  return options;
}

// Two kernels over rows of a batch of 4: more than the caches hold.
struct Rows {
  PlanCheck check;
  Value* x = check.input({4, 300, 600});
  Value* first = check.b.softmax(x, 2);

  Compiled compiled(std::vector<std::string> disabled = {}, int cores = 2) const {
    return compile(module_of(copy_graph(*check.graph)), cpu_options(std::move(disabled), cores));
  }
  std::vector<HostTensor> run(std::vector<std::string> disabled = {}, int cores = 2) const {
    return PlanRunner(module_of(copy_graph(*check.graph)), cpu_options(std::move(disabled), cores)).run(check.inputs, {});
  }
};

LoopStep loop_of(const Compiled& c) {
  const std::vector<Step> steps = c.schedule.entries[0].steps_apart();
  return *std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.is<LoopStep>(); })->as<LoopStep>();
}

std::size_t loops(const Compiled& c) {
  const std::vector<Step> steps = c.schedule.entries[0].steps_apart();
  return static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.is_loop(); }));
}

std::int64_t arena_floats(const Compiled& c) {
  std::int64_t floats = 0;
  for (const Buffer& b : c.schedule.buffers) {
    const bool used = std::any_of(c.schedule.kernels.begin(), c.schedule.kernels.end(), [&](const Kernel& k) {
      return std::any_of(k.operands.begin(), k.operands.end(),
                         [&](const Operand& o) { return &c.schedule.buffers[static_cast<std::size_t>(o.buffer)] == &b; });
    });
    if (used && b.kind == BufferKind::arena) floats += b.elements.value();
  }
  return floats;
}

TEST_CASE("what one image hands on takes the memory of one image") {
  Rows net;
  Builder& b = net.check.b;
  net.check.out("y", b.softmax(b.add(b.mul(net.first, 3.0), net.x), 2));
  const Compiled c = net.compiled(), whole = net.compiled({"fuse_over_batch", "fuse_row_tiles"});
  CHECK(loops(c) == 1);
  CHECK(loops(whole) == 0);
  CHECK(c.plan.launches == 1);
  CHECK(arena_floats(whole) == 4 * 300 * 600);
  CHECK(loop_of(c).slots == 4);
  CHECK(arena_floats(c) == 4 * 176 * 1024);  // whole pages a place
  const Compiled shared = net.compiled({}, 3);
  CHECK(loop_of(shared).slots == 0);
  CHECK(arena_floats(shared) == 300 * 600);
  const auto found = net.run();
  CHECK(oclc::difference(found, net.run({"fuse_over_batch", "fuse_row_tiles"}), 0) == "");
  CHECK(oclc::difference(found, net.run({}, 3), 0) == "");
  CHECK(oclc::difference(found, evaluate(*net.check.graph, net.check.inputs, {}), 5e-6) == "");
}

TEST_CASE("a work-group does whole images where cores share them evenly") {
  Target target = find_target("cpu");
  target.compute_units = 4;
  CHECK(places_of_trips(3, target) == 0);
  CHECK(places_of_trips(4, target) == 4);
  CHECK(places_of_trips(6, target) == 0);
  CHECK(places_of_trips(28, target) == 4);
  CHECK(places_of_trips(29, target) == 4);
  target.compute_units = 1;
  CHECK(places_of_trips(8, target) == 0);
  target.compute_units = 64;
  CHECK(places_of_trips(64, target) == 0);
}

TEST_CASE("what is read outside of the loop keeps its memory") {
  Rows net;
  Builder& b = net.check.b;
  net.check.out("y", b.softmax(b.add(b.mul(net.first, 3.0), net.x), 2));
  net.check.out("mean", b.reduce("reduce_mean", net.first, {0}, false));
  CHECK(loops(net.compiled()) == 1);
  CHECK(arena_floats(net.compiled()) >= 4 * 300 * 600);
  CHECK(oclc::difference(net.run(), net.run({"fuse_over_batch", "fuse_row_tiles"}), 0) == "");
}

TEST_CASE("a kernel that reads another image stays outside") {
  Rows net;
  Builder& b = net.check.b;
  Value* turned = b.slice(net.first, {Expr(3), Expr(0), Expr(0)}, {Expr(4), Expr(300), Expr(600)}, {-1, 1, 1});
  net.check.out("y", b.softmax(b.add(b.mul(turned, 3.0), net.x), 2));
  CHECK(loops(net.compiled()) == 0);
  CHECK(oclc::difference(net.run(), evaluate(*net.check.graph, net.check.inputs, {}), 5e-6) == "");
}

TEST_CASE("what the caches hold gains nothing") {
  PlanCheck check;
  Value* x = check.input({4, 30, 60});
  check.out("y", check.b.softmax(check.b.add(check.b.softmax(x, 2), x), 2));
  CHECK(loops(compile(module_of(copy_graph(*check.graph)), cpu_options())) == 0);
}

// Two kernels over a batch of 4 whose images the caches do not hold, the second a data gradient with weights of run time.
struct Gradient {
  PlanCheck check;

  Gradient(std::int64_t channels, std::int64_t size) {
    Builder& b = check.b;
    Value* x = check.input({4, channels, size, size});
    Value* w = check.input({channels, channels, 3, 3});
    Value* first = b.relu(b.conv(x, b.constant(random_tensor(DType::f32, {channels, channels, 1, 1}, 1)), nullptr, {}));
    check.out("dx", b.call("conv_transpose", {first, w},
                           {{"strides", Ints{1, 1}},
                            {"dilations", Ints{1, 1}},
                            {"pads", Ints{1, 1, 1, 1}},
                            {"group", std::int64_t{1}},
                            {"output_shape", Shape{Expr(size), Expr(size)}}}));
  }
  Compiled compiled() const { return compile(module_of(copy_graph(*check.graph)), cpu_options()); }
};

TEST_CASE("filters that a loop's convolution transforms are transformed once, before the loop") {
  const Gradient small(32, 80);
  const Compiled c = small.compiled();
  const std::vector<Step> steps = c.schedule.entries[0].steps_apart();
  const auto loop = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.is_loop(); });
  REQUIRE(loop != steps.end());
  REQUIRE(loop != steps.begin());
  const auto name = [&](const Step& s) { return c.schedule.kernel(s).name; };
  CHECK(name(loop->body().back()) + "_filter" == name(*(loop - 1)));
  CHECK(oclc::difference(PlanRunner(module_of(copy_graph(*small.check.graph)), cpu_options()).run(small.check.inputs, {}),
                         evaluate(*small.check.graph, small.check.inputs, {}), 5e-6) == "");
}

TEST_CASE("large weights are not read anew for every image, constants or not") {
  CHECK(loops(Gradient(256, 28).compiled()) == 0);
}

TEST_CASE("guards bound an index: padding stays inside of its image, a shift by an image does not") {
  const Expr y = Expr::axis("y", 10), x = Expr::axis("x", 10), dy = Expr::axis("dy", 3), dx = Expr::axis("dx", 3);
  const Expr index = 10 * (y + dy - 1) + x + dx - 1;
  const std::vector<Expr> guards = {y + dy - 1, 10 - y - dy, x + dx - 1, 10 - x - dx};
  CHECK(lies_within(index, guards, 100));
  CHECK(!lies_within(index, {}, 100));
  CHECK(!lies_within(index + 100, guards, 100));
  CHECK(!lies_within(index - 1, guards, 100));
  CHECK(!lies_within(index, guards, 99));
  CHECK(!lies_within(Expr::symbol("%3"), {}, 100));
}

}  // namespace
}  // namespace oclc::test

// Kernels one after another in one launch: what they compute, what the plan says of them, where stretches end.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/schedule/megakernel.h"
#include "plan_generated.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

// relu(x W_i) row by row made a distribution, `layers` times: a product and a row kernel each.
struct Layers {
  PlanCheck check;

  explicit Layers(int layers, bool symbolic = false, std::int64_t width = 40) {
    Builder& b = check.b;
    Value* x = check.input(DType::f32, {9, width}, -1, 1, {symbolic ? "N" : "", ""});
    for (int i = 0; i < layers; ++i) {
      Value* w =
          i % 2 ? b.constant(random_tensor(DType::f32, {width, width}, static_cast<unsigned>(i))) : check.input({width, width});
      x = b.softmax(b.relu(b.matmul(x, w)), 1);
    }
    check.out("y", x);
  }

  Compiled compiled(const std::string& target, std::vector<std::string> disabled = {}) const {
    CompileOptions options = default_options();
    options.target = find_target(target);
    options.target.has.fp64 = true;  // as the device under test has it
    options.disabled = std::move(disabled);
    return compile(module_of(copy_graph(*check.graph)), options);
  }
};

const plan::Plan& plan_of(const Compiled& c) { return *flatbuffers::GetRoot<plan::Plan>(c.plan.metadata.data()); }

const plan::Launch& first_launch(const Compiled& c) { return *plan_of(c).entries()->Get(0)->steps()->Get(0)->body_as_Launch(); }

// First and last schedule index of each buffer of the arena.
std::vector<std::pair<int, int>> lives(const Compiled& c) {
  std::vector<std::pair<int, int>> out;
  for (const plan::Buffer* b : *plan_of(c).buffers()) {
    if (b->kind() == plan::BufferKind::arena) out.emplace_back(b->first(), b->last());
  }
  return out;
}

TEST_CASE("kernels one after another are one launch") {
  const Layers net(3);
  const Compiled whole = net.compiled("cpu"), apart = net.compiled("cpu", {"megakernel"});
  CHECK(whole.plan.launches == 1);
  CHECK(apart.plan.launches == 6);
  const plan::Launch& launch = first_launch(whole);
  CHECK(launch.anchor()->str() == "megakernel");
  REQUIRE(launch.parts()->size() == 6);
  for (std::uint32_t i = 0; i < 6; ++i) {
    CHECK(launch.parts()->Get(i)->name()->str() == apart.schedule.kernels[i].name);
    CHECK(launch.parts()->Get(i)->anchor()->str() == (i % 2 ? "row" : "contraction"));
  }
  REQUIRE(whole.schedule.entries[0].steps.size() == 1);
  REQUIRE(whole.schedule.entries[0].steps[0].is<MegakernelStep>());
  CHECK(whole.schedule.entries[0].steps[0].body().size() == 6);
  CHECK(whole.schedule.entries[0].steps_apart().size() == apart.schedule.entries[0].steps.size());
  const Compiled unfused = net.compiled("cpu", {"fuse"});
  CHECK(unfused.plan.launches == static_cast<int>(unfused.schedule.entries[0].steps.size()));
}

TEST_CASE("a launch does no more kernels than the target's compiler takes as one") {
  const Layers net(3);
  CompileOptions options = default_options();
  options.target.kernels_a_launch = 4;
  CHECK(compile(module_of(copy_graph(*net.check.graph)), options).plan.launches == 2);
  DeviceFacts facts;
  facts.vendor = "GenuineIntel";  // PoCL's, on such a processor
  CHECK(target_for(facts).kernels_a_launch == Target::kNoLimit);
  facts.vendor = "Intel(R) Corporation";
  CHECK(target_for(facts).kernels_a_launch == 1);
}

TEST_CASE("megakernel stretches compute what launches compute") {
  for (const int layers : {1, 2, 5}) {
    for (const bool symbolic : {false, true}) {
      Layers net(layers, symbolic);
      if (symbolic) net.check.symbols = {{"N", 9}};
      net.check.check(5e-6);
    }
  }
}

TEST_CASE("more tiles than groups, and groups without a tile") {
  Layers(2, false, 1).check.check(5e-6);
  PlanCheck many;
  Value* x = many.input({700, 1100});
  many.out("wide", many.b.softmax(many.b.add(many.b.softmax(x, 1), x), 0));
  many.check(5e-6);
}

TEST_CASE("a run after a run starts with counters of zero") {
  const Layers net(4);
  const auto wanted = evaluate(*net.check.graph, net.check.inputs, {});
  CompileOptions options = default_options();
  options.target = find_target("cpu");
  PlanRunner runner(module_of(copy_graph(*net.check.graph)), options);
  for (int i = 0; i < 50; ++i) CHECK(oclc::difference(runner.run(net.check.inputs, {}), wanted, 5e-6) == "");
}

TEST_CASE("buffers live from part to part, as from launch to launch") {
  const Layers net(4);
  CHECK(lives(net.compiled("cpu")) == lives(net.compiled("cpu", {"megakernel"})));
}

TEST_CASE("a stretch ends where its arguments would no longer fit") {
  const Compiled c = Layers(60).compiled("cpu");
  CHECK(c.plan.launches > 1);
  CHECK(c.plan.launches < 8);
  for (const plan::Step* step : *plan_of(c).entries()->Get(0)->steps()) {
    const plan::Launch& launch = *step->body_as_Launch();
    std::size_t bytes = 8;
    for (const plan::Arg* arg : *launch.args()) bytes += arg->kind() == plan::ArgKind::buffer ? 16 : 8;
    CHECK(bytes <= 1024);
  }
}

// h' = tanh(h U + x_t), all h collected, `trips` times.
struct Recurrence {
  PlanCheck check;

  explicit Recurrence(std::int64_t trips, bool symbolic = false, std::int64_t width = 80) {
    Builder& b = check.b;
    Value* x = check.input(DType::f32, {trips, 3, width}, -1, 1, {symbolic ? "T" : "", "", ""});
    Value* u = b.constant(random_tensor(DType::f32, {width, width}, 5, -0.1, 0.1));
    Value* h0 = check.input({3, width});
    auto body = std::make_unique<Graph>();
    Value *h = body->add_input("h", h0->type), *rows = body->add_input("x", x->type), *w = body->add_input("u", u->type);
    Builder in(*body, "cell");
    Value* row = in.reshape(in.slice_axis(rows, 0, Expr::axis("t", x->type.shape[0]), 1), {3, width});
    Value* next = in.tanh(in.add(in.matmul(h, w), row));
    body->add_output("h", next);
    body->add_output("all", next);
    const Node* loop = b.loop(x->type.shape[0], "t", {h0}, {x, u}, std::move(body));
    check.out("last", b.softmax(loop->output(0), 1));
    check.out("all", loop->output(1));
    if (symbolic) check.symbols = {{"T", trips}};
  }

  CompileOptions options(std::vector<std::string> disabled) const {
    CompileOptions out = default_options();
    out.target = find_target("cpu");
    out.disabled = std::move(disabled);
    return out;
  }
  std::shared_ptr<Module> module() const { return module_of(copy_graph(*check.graph)); }
};

TEST_CASE("a loop over kernels runs inside one launch, trip after trip") {
  for (const std::int64_t trips : {1, 2, 37}) {
    for (const bool symbolic : {false, true}) {
      CAPTURE(trips);
      const Recurrence net(trips, symbolic);
      const auto wanted = evaluate(*net.check.graph, net.check.inputs, net.check.symbols);
      PlanRunner megakernel(net.module(), net.options({"loop_kernel"})),
          apart(net.module(), net.options({"loop_kernel", "megakernel"}));
      const auto launched = apart.run(net.check.inputs, net.check.symbols);
      CHECK(oclc::difference(launched, wanted, 5e-6) == "");
      for (int i = 0; i < 20; ++i)
        CHECK(oclc::difference(megakernel.run(net.check.inputs, net.check.symbols), launched, 0) == "");
    }
  }
  const Recurrence net(37);
  const Compiled c = compile(net.module(), net.options({"loop_kernel"}));
  CHECK(c.plan.launches == 1);
  const plan::Launch& launch = first_launch(c);
  REQUIRE(launch.parts()->size() == 3);
  CHECK(launch.parts()->Get(1)->anchor()->str() == "loop");
}

TEST_CASE("a value that a trip carries on and collects is stored in both places by one kernel") {
  const Recurrence net(5);
  const Compiled c = compile(net.module(), net.options({"loop_kernel"}));
  const Step loop = c.schedule.entries[0].steps_apart()[1];
  REQUIRE(loop.is<LoopStep>());
  REQUIRE(loop.body().size() == 1);
  CHECK(c.schedule.kernel(loop.body()[0]).stores.size() == 2);
}

TEST_CASE("groups of several work-items, and loops whose iterations are counted, stay launches") {
  for (const char* target : {"gpu", "llvmpipe"}) CHECK(Layers(3).compiled(target).plan.launches == 6);
}

}  // namespace
}  // namespace oclc::test

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

// h = tanh(x[t] W + h U + b), c = c * 0.9 + h * h over `trips` rows of x; results: last h, last c, all h.
struct Recurrent {
  PlanCheck check;

  Recurrent(std::int64_t trips, std::int64_t inputs, std::int64_t width, bool symbolic = true) {
    Builder& b = check.b;
    Value* x = check.input(DType::f32, {trips, inputs}, -1, 1, {symbolic ? "T" : "", ""});
    Value* w = b.constant(random_tensor(DType::f32, {inputs, width}, 1, -0.5, 0.5));
    Value* u = b.constant(random_tensor(DType::f32, {width, width}, 2, -0.2, 0.2));
    Value* bias = b.constant(random_tensor(DType::f32, {width}, 3));
    Value* h0 = check.input({1, width});
    Value* c0 = check.input({1, width});
    const Expr trip = x->type.shape[0];
    auto body = std::make_unique<Graph>();
    Value* h = body->add_input("h", h0->type);
    Value* c = body->add_input("c", c0->type);
    Value* rows = body->add_input("x", x->type);
    Value *win = body->add_input("w", w->type), *uin = body->add_input("u", u->type), *bin = body->add_input("b", bias->type);
    Builder in(*body, "cell");
    Value* row = in.slice_axis(rows, 0, Expr::axis("t", trip), 1);
    Value* next = in.tanh(in.add(in.add(in.matmul(row, win), in.matmul(h, uin)), bin));
    body->add_output("h", next);
    body->add_output("c", in.add(in.mul(c, 0.9), in.mul(next, next)));
    body->add_output("all", in.reshape(next, {width}));
    const Node* loop = b.loop(trip, "t", {h0, b.mul(c0, 0.5)}, {x, w, u, bias}, std::move(body));
    check.out("last h", loop->output(0));
    check.out("last c", b.add(loop->output(1), 1.0));
    check.out("all h", loop->output(2));
  }

  Compiled compiled(const std::string& target, std::vector<std::string> disabled = {}) const {
    CompileOptions options = default_options();
    options.target = find_target(target);
    options.target.has.fp64 = true;  // as the device under test has it
    options.disabled = std::move(disabled);
    return compile(module_of(copy_graph(*check.graph)), options);
  }
};

bool has_loop_kernel_step(const Compiled& compiled) {
  const auto& steps = compiled.schedule.entries[0].steps;
  return std::any_of(steps.begin(), steps.end(), [](const Step& s) { return s.is<LoopKernelStep>(); });
}

TEST_CASE("a small loop is one kernel with what stands around it") {
  const Recurrent net(6, 3, 10);
  for (const std::string& target : target_names()) {
    CAPTURE(target);
    const Compiled compiled = net.compiled(target);
    CHECK(compiled.plan.launches == 1);
    CHECK(compiled.plan.files.size() == 1);
    CHECK(compiled.schedule.text().find("loop_kernel {") != std::string::npos);
  }
}

TEST_CASE("loops in one kernel compute what launches compute") {
  for (const std::int64_t trips : {1, 6}) {
    for (const std::int64_t width : {1, 10, 67}) Recurrent(trips, 5, width, trips == 1).check.check(5e-6);
  }
}

TEST_CASE("work-groups keep carried values in local memory") {
  const std::string source = Recurrent(6, 3, 10).compiled("gpu").plan.files[0].source;
  CHECK(source.find("__local float b_") != std::string::npos);
  CHECK(source.find("barrier(CLK_LOCAL_MEM_FENCE") != std::string::npos);
  CHECK(Recurrent(6, 3, 10).compiled("cpu").plan.files[0].source.find("  __local ") == std::string::npos);
}

TEST_CASE("loops in one kernel can be switched off") {
  const Recurrent net(6, 3, 10);
  CHECK(has_loop_kernel_step(net.compiled("cpu")));
  CHECK(!has_loop_kernel_step(net.compiled("cpu", {"loop_kernel"})));
  CHECK(!has_loop_kernel_step(net.compiled("cpu", {"fuse"})));
}

TEST_CASE("loops of a target that counts their iterations stay launches") {
  CHECK(!has_loop_kernel_step(Recurrent(6, 3, 10).compiled("llvmpipe")));
}

TEST_CASE("a loop with enough work for the device stays one of launches") {
  CHECK(!has_loop_kernel_step(Recurrent(6, 3, 3000).compiled("cpu")));
  CHECK(!has_loop_kernel_step(Recurrent(6, 3, 3000).compiled("gpu")));
}

TEST_CASE("loops within loops run in one kernel") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({4, 5});
  Value* start = check.input({5});
  auto inner = std::make_unique<Graph>();
  {
    Value* h = inner->add_input("h", start->type);
    Value* rows = inner->add_input("x", x->type);
    Builder in(*inner, "inner");
    inner->add_output("h", in.tanh(in.add(h, in.reshape(in.slice_axis(rows, 0, Expr::axis("i", 4), 1), {5}))));
  }
  auto outer = std::make_unique<Graph>();
  Value* h = outer->add_input("h", start->type);
  Value* rows = outer->add_input("x", x->type);
  Builder out(*outer, "outer");
  outer->add_output("h", out.mul(out.loop(4, "i", {out.mul(h, 0.5)}, {rows}, std::move(inner))->output(0), 2.0));
  const Node* loop = b.loop(3, "o", {start}, {x}, std::move(outer));
  check.out("last", loop->output(0));
  check.check(5e-6);
  CHECK(compile(module_of(copy_graph(*check.graph)), default_options()).plan.launches == 1);
}

}  // namespace
}  // namespace oclc::test

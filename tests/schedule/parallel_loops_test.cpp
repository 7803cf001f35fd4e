// Loops that need nothing of each other: which become one step, and that they compute what they did.
#include "compiler/schedule/parallel_loops.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

// h = tanh(h W + x[t]) over `trips` rows of x.
Value* recurrent(PlanCheck& check, Value* x, std::int64_t width, unsigned seed) {
  Builder& b = check.b;
  Value* start = check.input({8, width});
  auto body = std::make_unique<Graph>();
  body->name = "step";
  Value* h = body->add_input("h", start->type);
  Value* all = body->add_input("x", x->type);
  Value* weights = body->add_input("w", TensorType{DType::f32, {Expr(width), Expr(width)}});
  Builder inner(*body, "step");
  const Expr trip = x->type.shape[0];
  const std::string counter = "t" + std::to_string(seed);
  Value* row = inner.reshape(inner.slice_axis(all, 0, Expr::axis(counter, trip), 1), {8, width});
  Value* next = inner.tanh(inner.add(inner.matmul(h, weights), row));
  body->add_output("h", next);
  body->add_output("collected", next);
  Value* w = b.constant(random_tensor(DType::f32, {width, width}, seed, -0.05, 0.05));
  return b.loop(trip, counter, {start}, {x, w}, std::move(body))->output(1);
}

std::string steps_of(const PlanCheck& check, const std::vector<std::string>& disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target("cpu");
  options.disabled = disabled;
  const std::string text = compile(module_of(copy_graph(*check.graph)), options).schedule.text();
  return text.substr(text.find("entry "));
}

bool has_apart(const std::string& steps) { return steps.find("parallel_loops <") != std::string::npos; }

TEST_CASE("two loops that need nothing of each other are a core's each") {
  PlanCheck check;
  Value* x = check.input(DType::f32, {7, 8, 256}, -1, 1, {"T", "", ""});
  Value* y = check.input(DType::f32, {7, 8, 256}, -1, 1, {"T", "", ""});
  check.out("one", recurrent(check, x, 256, 1));
  check.out("other", recurrent(check, check.b.relu(y), 256, 2));
  CHECK(has_apart(steps_of(check)));
  for (const std::string pass : {"parallel_loops", "megakernel", "fuse"}) CHECK_FALSE(has_apart(steps_of(check, {pass})));
  check.check();
}

TEST_CASE("a loop that reads another's result comes after it") {
  PlanCheck check;
  Value* x = check.input({7, 8, 256});
  check.out("second", recurrent(check, recurrent(check, x, 256, 1), 256, 2));
  CHECK_FALSE(has_apart(steps_of(check)));
  check.check();
}

TEST_CASE("loops of unlike work, and of weights that a last cache has no room for, stay shared") {
  {
    PlanCheck check;
    check.out("large", recurrent(check, check.input({5, 8, 320}), 320, 1));
    check.out("small", recurrent(check, check.input({5, 8, 256}), 256, 2));
    CHECK_FALSE(has_apart(steps_of(check)));
  }
  {
    PlanCheck check;
    check.out("one", recurrent(check, check.input({2, 8, 1280}), 1280, 1));
    check.out("other", recurrent(check, check.input({2, 8, 1280}), 1280, 2));
    CHECK_FALSE(has_apart(steps_of(check)));
  }
}

}  // namespace
}  // namespace oclc::test

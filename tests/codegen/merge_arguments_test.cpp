// Kernels that find several buffers in one memory object: what they compute, what the plan passes.
#include <functional>

#include "plan_generated.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

struct PassedArguments {
  int objects = 0, offsets = 0;
  bool operator==(const PassedArguments&) const = default;
};

struct MemoryCase {
  const char* claim;
  PassedArguments together, apart;  // with the pass and without
  std::function<void(PlanCheck&)> make;
};

Compiled compiled_merge_arguments(const PlanCheck& check, const std::string& target, std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.disabled = std::move(disabled);
  options.disabled.emplace_back("fuse_in_work_group");
  return compile(module_of(copy_graph(*check.graph)), options);
}

// What all launches pass.
PassedArguments passed_by(const Compiled& c) {
  PassedArguments found;
  for (const plan::Step* step : *flatbuffers::GetRoot<plan::Plan>(c.plan.metadata.data())->entries()->Get(0)->steps()) {
    for (const plan::Arg* arg : *step->body_as_Launch()->args()) {
      if (arg->kind() == plan::ArgKind::buffer) ++(arg->shared() ? found.offsets : found.objects);
    }
  }
  return found;
}

TEST_CASE("buffers of the arena and constants are passed as one memory object each") {
  const MemoryCase cases[] = {
      {"scratch_is_an_offset",
       {6, 2},
       {8, 0},
       [](PlanCheck& c) {
         Value* x = c.input({64, 100});
         Value* sums = c.b.reduce("reduce_sum", x, {1}, false);
         Value* other = c.b.reduce("reduce_sum", sums, {0}, true);
         c.out("y", c.b.call("add", {c.b.expand(c.b.reshape(c.b.mul(sums, other), {Expr(64), Expr(1)}), {Expr(64), Expr(300)}),
                                     c.input({64, 300})}));
       }},
      {"weights_and_a_bias_are_constants",
       {3, 1},
       {4, 0},
       [](PlanCheck& c) {
         Value* product = c.b.matmul(c.input({64, 64}), c.b.constant(random_tensor(DType::f32, {64, 64}, 1)));
         c.out("y", c.b.call("add", {product, c.b.constant(random_tensor(DType::f32, {64}, 2))}));
       }},
      {"inputs_and_outputs_are_the_callers",
       {3, 0},
       {3, 0},
       [](PlanCheck& c) {
         c.out("y", c.b.call("add", {c.input({7, 9}), c.input({7, 9})}));
       }},
      {"one_constant_is_passed_as_before",
       {3, 0},
       {3, 0},
       [](PlanCheck& c) {
         c.out("y", c.b.call("add", {c.input({7, 9}), c.b.constant(random_tensor(DType::f32, {7, 9}, 1))}));
       }},
  };
  for (const MemoryCase& one : cases) {
    CAPTURE(std::string(one.claim));
    PlanCheck check;
    one.make(check);
    const PassedArguments together = passed_by(compiled_merge_arguments(check, "h200")),
                          apart = passed_by(compiled_merge_arguments(check, "h200", {"merge_arguments"}));
    CAPTURE(together.objects);
    CAPTURE(together.offsets);
    CAPTURE(apart.objects);
    CHECK(together == one.together);
    CHECK(apart == one.apart);
    CHECK(passed_by(compiled_merge_arguments(check, "gpu")).offsets == 0);
    CHECK(check.problem("h200", true, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
  }
}

}  // namespace
}  // namespace oclc::test

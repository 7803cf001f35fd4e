// Kernels that do not need each other share a launch, with the bits that they have alone.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>

#include "compiler/codegen/launches/horizontal_fusion.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

CompileOptions options_for(const std::string& target, std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.disabled = std::move(disabled);
  return options;
}

// While it lives PoCL optimises kernels, which plain_kernels.cpp switches off.
class OptimisedKernels {
 public:
  OptimisedKernels() {
    if (const char* flags = std::getenv(kFlags)) flags_ = flags;
    unsetenv(kFlags);
  }
  OptimisedKernels(const OptimisedKernels&) = delete;
  OptimisedKernels& operator=(const OptimisedKernels&) = delete;
  ~OptimisedKernels() {
    if (flags_) setenv(kFlags, flags_->c_str(), 1);
  }

 private:
  static constexpr const char* kFlags = "POCL_EXTRA_BUILD_FLAGS";
  std::optional<std::string> flags_;
};

struct Case {
  const char* claim;
  std::size_t launches, apart;  // with the pass and without
  std::function<void(PlanCheck&)> make;
};

Value* row_sums(PlanCheck& c, Value* x) { return c.b.reduce("reduce_sum", x, {1}, false); }

TEST_CASE("kernels that do not need each other are one launch") {
  const Case cases[] = {
      {"pointwise_kernels_of_any_shape", 1, 3,
       [](PlanCheck& c) {
         c.out("a", c.b.relu(c.input({3, 7})));
         c.out("b", c.b.relu(c.input({300, 5})));
         c.out("c", c.b.relu(c.input({11})));
       }},
      {"sums_that_groups_share_have_launches_of_their_own", 2, 2,
       [](PlanCheck& c) {
         c.out("a", row_sums(c, c.input({64, 512})));
         c.out("b", row_sums(c, c.input({64, 512})));
       }},
      {"what_is_not_needed_is_passed", 2, 3,
       [](PlanCheck& c) {
         c.out("a", c.b.relu(c.input({300, 5})));
         c.out("b", row_sums(c, c.input({64, 512})));
         c.out("c", c.b.relu(c.input({9, 9})));
       }},
      {"ranges_of_one_concatenation_do_not_meet", 1, 2,
       [](PlanCheck& c) {
         c.out("y", c.b.concat({row_sums(c, c.input({64, 5})), row_sums(c, c.input({50, 4}))}, 0));
       }},
      {"one_that_needs_the_other_stays", 2, 2,
       [](PlanCheck& c) {
         Value* a = row_sums(c, c.input({64, 512}));
         c.out("a", a);
         c.out("b", row_sums(c, c.b.expand(c.b.reshape(a, {Expr(1), Expr(64)}), {Expr(70), Expr(64)})));
       }},
      {"what_takes_longer_than_launches_stays", 2, 2,
       [](PlanCheck& c) {
         c.out("a", c.b.relu(c.input({4096, 1024})));
         c.out("b", c.b.relu(c.input({4096, 1000})));
       }},
  };
  for (const Case& one : cases) {
    CAPTURE(std::string(one.claim));
    PlanCheck check;
    one.make(check);
    const auto launches = [&](std::vector<std::string> disabled) {
      return static_cast<std::size_t>(
          compile(module_of(copy_graph(*check.graph)), options_for("gpu", std::move(disabled))).plan.launches);
    };
    CHECK(launches({}) == one.launches);
    CHECK(launches({"horizontal_fusion"}) == one.apart);
    check.check(2e-6, false);
  }
}

TEST_CASE("operands are laid out and packed in launches that they share") {
  // Fewer terms than a square has, so that items skip stores, behind a barrier and the launch's condition.
  const OptimisedKernels optimised;
  PlanCheck check;
  Builder& b = check.b;
  Value* normal = b.add(b.mul(b.sub(check.input({6272, 16}), check.input({16})), check.input({16})), check.input({16}));
  check.out("few terms", b.matmul(normal, check.input({16, 96})));
  check.out("few columns", b.matmul(b.tanh(check.input({1000, 20})), check.input({20, 20})));
  for (const std::string precision : {"fp32", "tf32"}) {
    CompileOptions options = options_for("h200");
    options.target.has.fp64 = true;
    options.precision = precision;
    // Arithmetic units so slow that every product is worth the matrix units, and memory so fast that no kernel is too long.
    options.target.flops = 1e9;
    options.target.bytes_per_second = 1e18;
    options.target.launch_seconds = 1e-12;
    PlanRunner runner(module_of(copy_graph(*check.graph)), options);
    for (const char* part : {"square[row", "sizes[quad"}) CHECK(runner.source().find(part) != std::string::npos);
    const std::vector<Step>& steps = runner.compiled().schedule.entries[0].steps;
    CHECK(std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.is_beside(); }));

    const auto wanted = evaluate(*check.graph, check.inputs, {});
    CHECK(difference(runner.run(check.inputs, {}), wanted, precision == "fp32" ? 2e-6 : 3e-3) == "");
  }
}

TEST_CASE("a launch of kernels that need each other is an internal error") {
  PlanCheck check;
  Value* first = row_sums(check, check.input({64, 512}));
  check.out("first", first);
  check.out("second", check.b.relu(first));
  const CompileOptions options = options_for("gpu", std::vector<std::string>{"fuse"});
  Schedule schedule = compile(module_of(copy_graph(*check.graph)), options).schedule;
  const std::vector<Step>& steps = schedule.entries.front().steps;
  REQUIRE(steps.size() == 2);
  CHECK_THROWS_WITH(generate_horizontal_fusion("both", steps, schedule, options.target),
                    doctest::Contains("kernels of one launch do not need each other"));
}

TEST_CASE("sizes that are not known and devices that are no GPUs have launches of their own, but for groups of equal kernels") {
  PlanCheck check;
  check.symbols = {{"T", 5}};
  check.out("a", check.b.relu(check.input(random_tensor(DType::f32, {3, 5}, 1), {"", "T"})));
  check.out("b", check.b.relu(check.input(random_tensor(DType::f32, {5, 2}, 2), {"T", ""})));
  CompileOptions apart = options_for("gpu");
  apart.disabled.emplace_back("ragged_groups");
  CHECK(compile(module_of(copy_graph(*check.graph)), apart).plan.launches == 2);
  CHECK(compile(module_of(copy_graph(*check.graph)), options_for("gpu")).plan.launches == 1);
  check.check(0, false);
}

}  // namespace
}  // namespace oclc::test

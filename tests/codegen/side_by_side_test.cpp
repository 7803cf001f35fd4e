// Kernels that do not need each other share a launch, with the bits that they have alone.
#include <functional>

#include "compiler/codegen/side_by_side.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

CompileOptions options_for(const std::string& target, std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.disabled = std::move(disabled);
  return options;
}

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
    CHECK(launches({"side_by_side"}) == one.apart);
    check.check(2e-6, false);
  }
}

TEST_CASE("sizes that are not known and devices that are no GPUs have launches of their own") {
  PlanCheck check;
  check.symbols = {{"T", 5}};
  check.out("a", check.b.relu(check.input(random_tensor(DType::f32, {3, 5}, 1), {"", "T"})));
  check.out("b", check.b.relu(check.input(random_tensor(DType::f32, {5, 2}, 2), {"T", ""})));
  CHECK(compile(module_of(copy_graph(*check.graph)), options_for("gpu")).plan.launches == 2);
  check.check(0, false);
}

}  // namespace
}  // namespace oclc::test

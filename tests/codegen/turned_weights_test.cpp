// Weights of a product of one row, as they lie in a plan for a GPU.
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

// Whether a kernel reads terms side by side: 200 of them, of 96 results.
bool is_turned(const PlanCheck& check, std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target("gpu");
  options.disabled = std::move(disabled);
  bool found = false;
  for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files)
    found = found || file.source.find("200*out_col") != std::string::npos;
  return found;
}

TEST_CASE("weights that one product of one row reads lie along its terms") {
  PlanCheck check;
  Builder& b = check.b;
  Value* weights = b.constant(random_tensor(DType::f32, {200, 96}, 3));
  check.out("y", b.relu(b.add(b.matmul(check.input({1, 200}), weights), b.constant(random_tensor(DType::f32, {96}, 4)))));
  CHECK(is_turned(check));
  CHECK_FALSE(is_turned(check, {"turn_weights"}));
  check.check(2e-6, false);
}

TEST_CASE("weights with two readers, of many rows, or given when the plan runs stay as they are") {
  PlanCheck check;
  Builder& b = check.b;
  Value* weights = b.constant(random_tensor(DType::f32, {200, 96}, 3));
  check.out("one", b.matmul(check.input({1, 200}), weights));
  check.out("other", b.matmul(check.input({1, 200}), weights));
  check.out("many", b.matmul(check.input({70, 200}), b.constant(random_tensor(DType::f32, {200, 96}, 5))));
  check.out("given", b.matmul(check.input({1, 200}), check.input({200, 96})));
  CHECK_FALSE(is_turned(check));
  check.check(2e-6, false);
}

}  // namespace
}  // namespace oclc::test

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

TEST_CASE("where products are rounded, weights of one row are shorts with a scale for each result") {
  const auto plan_of = [](const HostTensor& weights, const char* precision, double* error) {
    Graph graph;
    Builder b(graph, "layer");
    Value* x = graph.add_input("x", {DType::f32, {Expr(1), Expr(200)}});
    graph.add_output("y", b.relu(b.add(b.matmul(x, b.constant(weights)), b.constant(random_tensor(DType::f32, {96}, 4)))));
    CompileOptions options = default_options();
    options.target = find_target("h200");
    options.precision = precision;
    std::string all;
    for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) all += file.source;
    *error = compare_with_reference(graph, std::vector{random_tensor(DType::f32, {1, 200}, 5)}, options).max_rel;
    return all;
  };
  const std::string vectors = "convert_float4(";
  double error = 0;
  HostTensor weights = random_tensor(DType::f32, {200, 96}, 3);
  CHECK(plan_of(weights, "tf32", &error).find(vectors) != std::string::npos);
  CHECK(error < 5e-5);
  CHECK(plan_of(weights, "fp32", &error).find(vectors) == std::string::npos);
  CHECK(error < 2e-6);
  // One that is so large that those of its result would be rounded to few bits.
  weights.set(5, 1e4);
  CHECK(plan_of(weights, "tf32", &error).find(vectors) == std::string::npos);
}

}  // namespace
}  // namespace oclc::test

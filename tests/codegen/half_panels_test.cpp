// Products whose last vector of columns is half a vector or less.
#include <fmt/format.h>

#include "compiler/contraction/tiling.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

bool multiplies_halves(const PlanCheck& check, const char* target) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files) {
    if (file.source.find("(float8)(0.0f)") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("half a vector ends one panel of wide vectors, and no other") {
  const Target &wide = find_target("cpu"), &narrow = find_target("cpu-256");
  CHECK(half_ends_panel(24, 2, wide));
  CHECK(half_ends_panel(17, 2, wide));
  CHECK(half_ends_panel(40, 3, wide));
  CHECK_FALSE(half_ends_panel(25, 2, wide));
  CHECK_FALSE(half_ends_panel(32, 2, wide));
  CHECK_FALSE(half_ends_panel(24, 1, wide));
  CHECK_FALSE(half_ends_panel(24, 3, wide));
  CHECK_FALSE(half_ends_panel(12, 2, narrow));
}

TEST_CASE("columns that end with half a vector are multiplied as one, with constant weights alone") {
  for (const std::int64_t columns : {17, 24, 40, 44}) {
    for (const bool computed : {false, true}) {
      CAPTURE(columns);
      CAPTURE(computed);
      PlanCheck constant, given;
      Builder& b = constant.b;
      Value* rows = constant.input({50, 96});
      if (computed) rows = b.mul(rows, b.tanh(constant.input({50, 1})));
      Value* weights = b.constant(random_tensor(DType::f32, {96, columns}, 3, -1, 1));
      constant.out("y", b.relu(b.add(b.matmul(rows, weights), constant.input({50, columns}))));
      CHECK(multiplies_halves(constant, "cpu") == (columns != 44));
      CHECK_FALSE(multiplies_halves(constant, "cpu-256"));
      const auto wanted = evaluate(*constant.graph, constant.inputs, constant.symbols);
      for (const char* target : {"cpu", "cpu-256"}) CHECK(constant.problem(target, true, 2e-6, wanted) == "");
      given.out("y", given.b.matmul(given.input({50, 96}), given.input({96, columns})));
      CHECK_FALSE(multiplies_halves(given, "cpu"));
    }
  }
}

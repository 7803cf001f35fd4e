// Gradients of rows that few of many places are read from, added to a product as those of tied weights are.
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("sums of scattered rows are read where they are used") {
  PlanCheck check;
  Builder& b = check.b;
  const auto scattered = [&](Value* indices, std::int64_t places) {
    return b.call("scatter_add", {indices, check.input({40, 48})},
                  {{"axis", std::int64_t{0}}, {"size", std::vector<Expr>{Expr(places)}}});
  };
  for (const DType dtype : {DType::i32, DType::i64}) {
    const std::string name = std::string(name_of(dtype)) + " ";
    Value* indices = check.input(dtype, {40}, -7, 90);
    check.out(name + "alone", scattered(indices, 97));
    check.out(name + "after a product",
              b.add(b.matmul(check.input({64, 97}), check.input({64, 48}), true, false), scattered(indices, 97)));
  }
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "gpu", "h200"}) {
    CAPTURE(target);
    CHECK(check.problem(target, true, 2e-6, wanted) == "");
  }
  CHECK(check.problem("cpu", false, 2e-6, wanted) == "");
}

// Products of many rows on CPUs that copy panels of a right operand given at run time: how wide these are, and the numbers.
#include "tests/codegen/plan_check.h"
#include "tests/support/choices.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Columns of the copied panel of the only product; 0 where none is copied.
std::int64_t copied_width(const PlanCheck& check, const std::string& target) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  const auto tiles = tiles_of<FmaTiles>(compile(module_of(copy_graph(*check.graph)), options).schedule);
  return tiles.size() == 1 && tiles[0].local_copy == LocalCopy::b ? tiles[0].panel_width : 0;
}

}  // namespace

TEST_CASE("panels of a copied right operand are as wide as leaves least of the last one empty") {
  struct Product {
    std::int64_t columns, width;
  };
  // Two vectors of 16 where three would save less than a tenth, or one takes more panels.
  for (const Product& p : {Product{37, 48}, {41, 48}, {33, 48}, {13, 16}, {51, 32}, {75, 32}, {117, 32}, {135, 32}}) {
    CAPTURE(p.columns);
    PlanCheck check;
    check.out("product", check.b.matmul(check.input({100, 131}), check.input({131, p.columns})));
    const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
    CHECK(check.problem("cpu", true, 1e-6, wanted) == "");
    CHECK(check.problem("cpu-256", true, 1e-6, wanted) == "");
    CHECK(copied_width(check, "cpu") == p.width);
  }
}

TEST_CASE("a copied right operand of one element is read once before each loop over its panels") {
  PlanCheck check;
  const auto one = check.b.expand(check.input({1, 1, 1}), {Expr(5), Expr(5), Expr(10)});
  check.out("product", check.b.matmul(check.input({5, 5, 5}), one));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  CHECK(check.problem("cpu", true, 1e-6, wanted) == "");
  CHECK(check.problem("cpu-256", true, 1e-6, wanted) == "");
}

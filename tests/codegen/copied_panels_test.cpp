// Products of many rows on CPUs that copy panels of a right operand given at run time: how wide these are, and the numbers.
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// "tile R x C" of the product's template, with columns as the copied panel has them.
std::string copied_width(const PlanCheck& check, const std::string& target) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files) {
    const std::size_t found = file.source.find("template contraction_packed_b_cpu, tile ");
    if (found == std::string::npos) continue;
    const std::size_t begin = file.source.find(" x ", found) + 3;
    return file.source.substr(begin, file.source.find(',', begin) - begin);
  }
  return "";
}

}  // namespace

TEST_CASE("panels of a copied right operand are as wide as leaves least of the last one empty") {
  struct Product {
    std::int64_t columns;
    std::string width;
  };
  // Two vectors of 16 where three would save less than a tenth, or one takes more panels.
  for (const Product& p :
       {Product{37, "48"}, {41, "48"}, {33, "48"}, {13, "16"}, {51, "32"}, {75, "32"}, {117, "32"}, {135, "32"}}) {
    CAPTURE(p.columns);
    PlanCheck check;
    check.out("product", check.b.matmul(check.input({100, 131}), check.input({131, p.columns})));
    const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
    CHECK(check.problem("cpu", true, 1e-6, wanted) == "");
    CHECK(check.problem("cpu-256", true, 1e-6, wanted) == "");
    CHECK(copied_width(check, "cpu") == p.width);
  }
}

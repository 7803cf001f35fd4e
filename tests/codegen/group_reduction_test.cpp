// Reductions and rows whose terms the work-items of a group share.
#include <fmt/format.h>

#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("groups share long reductions: sums, extremes, products, rows, several results a group, ragged ends") {
  PlanCheck check;
  Builder& b = check.b;
  for (const Ints& shape : {Ints{1, 64}, Ints{3, 65}, Ints{7, 1023}, Ints{1000, 300}, Ints{4, 4099}}) {
    Value* x = check.input(shape);
    const auto name = [&](const char* what) { return fmt::format("{} of {}", what, fmt::join(shape, "x")); };
    for (const std::int64_t axis : {0, 1}) {
      check.out(name("sum") + (axis ? " of rows" : " of columns"), b.reduce("reduce_sum", x, {axis}, false));
      check.out(name("max") + (axis ? " of rows" : " of columns"), b.reduce("reduce_max", x, {axis}, true));
    }
    check.out(name("sum of all"), b.reduce("reduce_sum", b.mul(x, x), {0, 1}, false));
    check.out(name("softmax"), b.softmax(x));
    check.out(name("log softmax"), b.call("log_softmax", {x}, {{"axis", std::int64_t{1}}}));
  }
  check.check(2e-6, false);
}

TEST_CASE("groups share rows and sums of unknown length") {
  for (const std::int64_t length : {1, 3, 70, 700}) {
    PlanCheck check;
    Builder& b = check.b;
    check.symbols = {{"T", length}};
    Value* x = check.input(random_tensor(DType::f32, {5, length}, 1), {"", "T"});
    check.out("softmax", b.softmax(x));
    check.out("sum", b.reduce("reduce_sum", x, {1}, false));
    check.out("max of columns", b.reduce("reduce_max", b.transpose(x, {1, 0}), {0}, false));
    check.check(2e-6, false);
    CompileOptions options = default_options();
    options.target = find_target("gpu");
    for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files)
      CHECK(file.source.find("sharer") != std::string::npos);
  }
}

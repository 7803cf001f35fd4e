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

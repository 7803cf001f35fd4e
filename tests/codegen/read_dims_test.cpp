// Dimensions that the model computes: their kernels run with sizes that the host reads in between.
#include "compiler/ops/read_dims.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

// The positive elements of the vector x, in order, by running sums and one comparison for each pair.
Value* positive_elements(Builder& b, Value* x, Expr* count = nullptr) {
  const Expr n = x->type.shape[0];
  Value* positive = b.call("greater", {x, b.scalar(DType::f32, 0)});
  Value* sums = b.cumsum(b.cast(positive, DType::i64), 0);
  const Expr found = b.read_dims(b.slice_axis(sums, 0, n - 1, 1), "positive", {n}).at(0);
  if (count) *count = found;
  Value* before = b.call("less_equal", {b.reshape(sums, {Expr(1), n}), b.iota({found, Expr(1)}, 0, DType::i64)});
  return b.gather(x, b.reduce("reduce_sum", b.cast(before, DType::i64), {1}, false));
}

TEST_CASE("kernels run with dimensions that were read") {
  for (const std::int64_t n : {1, 3, 17, 1000}) {
    for (const double low : {-1.0, 0.5, -3.0}) {  // some, all, few or none are positive
      PlanCheck check;
      Value* x = check.input(DType::f32, {n}, low, low + 2, {"N"});
      Expr found;
      Value* y = positive_elements(check.b, x, &found);
      check.out("selected", y);
      check.out("work on what was selected", check.b.exp(check.b.mul(y, 2)));
      check.out("a sum of it", check.b.reduce("reduce_sum", y, {0}, true));
      check.out("a table of it", check.b.mul(check.b.reshape(y, {found, Expr(1)}), y));
      check.out("not selected", check.b.relu(x));
      nest_read_dims(*check.graph);
      check.check();
    }
  }
}

TEST_CASE("a read follows from another read") {
  PlanCheck check;
  Value* x = check.input({200});
  Value* y = positive_elements(check.b, x);
  check.out("larger than a half", positive_elements(check.b, check.b.sub(y, check.b.scalar(DType::f32, 0.5))));
  nest_read_dims(*check.graph);
  check.check();
}

TEST_CASE("a plan runs again with other sizes, and says before a run what room an output needs") {
  PlanCheck check;
  Value* x = check.input(DType::f32, {50}, -1, 1, {"N"});
  check.out("selected", positive_elements(check.b, x));
  nest_read_dims(*check.graph);
  PlanRunner runner(module_of(copy_graph(*check.graph)), default_options());
  for (const unsigned seed : {1u, 2u, 3u}) {
    const std::vector<HostTensor> inputs = {random_tensor(DType::f32, {50 + 10 * static_cast<std::int64_t>(seed)}, seed)};
    const auto wanted = evaluate(*check.graph, inputs);
    const auto found = runner.run(inputs);
    CHECK(found[0].shape() == wanted[0].shape());
    CHECK(std::equal(found[0].data(), found[0].data() + found[0].bytes(), wanted[0].data()));
    CHECK(runner.session().bytes(0, OCLC_OUTPUT, "selected") == inputs[0].bytes());
  }
}

}  // namespace
}  // namespace oclc::test

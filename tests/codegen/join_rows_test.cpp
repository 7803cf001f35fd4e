// Rows whose only reader is a sum, and pointwise kernels of one iteration space: launches that are not there.
#include <functional>

#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

std::size_t launches(const PlanCheck& check, std::vector<std::string> disabled = {}) {
  disabled.emplace_back("side_by_side");
  CompileOptions options = default_options();
  options.target = find_target("gpu");
  options.disabled = std::move(disabled);
  return static_cast<std::size_t>(compile(module_of(copy_graph(*check.graph)), options).plan.launches);
}

struct Case {
  const char* claim;
  std::size_t launches, apart;  // with the pass and without
  std::function<void(PlanCheck&)> make;
};

Value* norm(PlanCheck& check, Value* x) {
  Builder& b = check.b;
  const std::int64_t width = x->type.shape.back().value();
  return b.layer_norm(x, check.input({width}), check.input({width}));
}

TEST_CASE("rows that a sum alone reads are computed by its groups") {
  const Case cases[] = {
      {"norm_before_a_product_of_one_row_joins_it", 1, 2,
       [](PlanCheck& c) {
         c.out("y", c.b.matmul(norm(c, c.input({1, 200})), c.input({200, 96})));
       }},
      {"norm_before_a_transposed_product_joins_it", 1, 2,
       [](PlanCheck& c) {
         c.out("y", c.b.matmul(norm(c, c.input({1, 256})), c.input({40, 256}), false, true));
       }},
      {"softmax_of_each_head_joins_the_product_with_values", 1, 2,
       [](PlanCheck& c) {
         c.out("y", c.b.matmul(c.b.softmax(c.input({5, 1, 70})), c.input({5, 70, 24})));
       }},
      {"rows_gathered_by_index_join", 1, 2,
       [](PlanCheck& c) {
         Value* row =
             c.b.call("gather", {c.input({9, 128}), c.input(ints_of(DType::i64, {1}, {-2}))}, {{"axis", std::int64_t{0}}});
         c.out("y", c.b.matmul(norm(c, row), c.input({128, 64})));
       }},
      {"a_row_with_two_readers_stays", 3, 3,
       [](PlanCheck& c) {
         Value* row = norm(c, c.input({1, 200}));
         c.out("y", c.b.matmul(row, c.input({200, 96})));
         c.out("z", c.b.matmul(row, c.input({200, 64})));
       }},
      {"a_row_that_is_a_result_stays", 2, 2,
       [](PlanCheck& c) {
         Value* row = norm(c, c.input({1, 200}));
         c.out("row", row);
         c.out("y", c.b.matmul(row, c.input({200, 96})));
       }},
      {"many_results_would_compute_the_row_too_often", 2, 2,
       [](PlanCheck& c) {
         c.out("y", c.b.matmul(norm(c, c.input({1, 64})), c.input({64, 16384})));
       }},
      {"rows_that_the_sum_runs_across_stay", 2, 2,
       [](PlanCheck& c) {
         c.out("y", c.b.reduce("reduce_sum", norm(c, c.input({80, 90})), {0}, false));
       }},
      {"a_row_moved_by_one_stays", 2, 2,
       [](PlanCheck& c) {
         Value* row = c.b.slice_axis(norm(c, c.input({1, 129})), 1, Expr(1), Expr(128));
         c.out("y", c.b.matmul(row, c.input({128, 64})));
       }},
  };
  for (const Case& one : cases) {
    CAPTURE(one.claim);
    PlanCheck check;
    one.make(check);
    CHECK(launches(check) == one.launches);
    CHECK(launches(check, {"join_rows"}) == one.apart);
    check.check(2e-6, false);
  }
}

TEST_CASE("rows of unknown length join the sum behind them") {
  for (const std::int64_t length : {1, 70, 300}) {
    PlanCheck check;
    check.symbols = {{"T", length}};
    Value* scores = check.input(random_tensor(DType::f32, {5, 1, length}, 1), {"", "", "T"});
    Value* values = check.input(random_tensor(DType::f32, {5, length, 24}, 2), {"", "T", ""});
    check.out("y", check.b.matmul(check.b.softmax(scores), values));
    CHECK(launches(check) == 1);
    check.check(2e-6, false);
  }
}

TEST_CASE("pointwise kernels of one iteration space are one launch") {
  const auto grown = [](PlanCheck& c, Value* row) { return c.b.concat({c.input({3, 7, 8}), row}, 1); };
  const Case cases[] = {
      {"concatenations_of_one_shape_are_one", 1, 2,
       [&](PlanCheck& c) {
         c.out("k", grown(c, c.input({3, 1, 8})));
         c.out("v", grown(c, c.input({3, 1, 8})));
       }},
      {"what_stands_between_and_needs_neither_is_passed", 2, 3,
       [&](PlanCheck& c) {
         Value* k = grown(c, c.input({3, 1, 8}));
         c.out("k", k);
         c.out("sums", c.b.reduce("reduce_sum", k, {0, 1, 2}, false));
         c.out("v", grown(c, c.input({3, 1, 8})));
       }},
      {"one_that_needs_the_other_stays", 3, 3,
       [&](PlanCheck& c) {
         Value* k = grown(c, c.input({3, 1, 8}));
         c.out("k", k);
         Value* sum = c.b.reduce("reduce_sum", k, {0, 1}, true);
         c.out("v", grown(c, c.b.expand(c.b.reshape(sum, {Expr(1), Expr(1), Expr(8)}), {Expr(3), Expr(1), Expr(8)})));
       }},
      {"another_shape_stays", 2, 2,
       [&](PlanCheck& c) {
         c.out("k", grown(c, c.input({3, 1, 8})));
         c.out("v", grown(c, c.input({3, 2, 8})));
       }},
  };
  for (const Case& one : cases) {
    CAPTURE(one.claim);
    PlanCheck check;
    one.make(check);
    CHECK(launches(check) == one.launches);
    CHECK(launches(check, {"join_pointwise"}) == one.apart);
    check.check(2e-6, false);
  }
}

}  // namespace
}  // namespace oclc::test

// Rows whose only reader is a sum, and pointwise kernels of one iteration space: launches that are not there.
#include <fmt/format.h>

#include <functional>

#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

std::size_t launches(const PlanCheck& check, std::vector<std::string> disabled = {}, bool with_chains = false) {
  disabled.emplace_back("horizontal_fusion");
  if (!with_chains) disabled.emplace_back("fuse_in_work_group");
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
    CHECK(launches(check, {"inline_row_statistics"}) == one.apart);
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
    CHECK(launches(check, {"fuse_pointwise"}) == one.apart);
    check.check(2e-6, false);
  }
}

// Scores of one query against keys, softmax, and the sum of values.
Value* attended(PlanCheck& c, Value* query, Value* keys, Value* values) {
  return c.b.matmul(c.b.softmax(c.b.mul(c.b.matmul(query, keys, false, true), 0.25)), values);
}

const std::vector<std::string> kCopied = {"forward_copies"};

TEST_CASE("small kernels that hand on a few values are one launch") {
  const auto excite = [](PlanCheck& c, Value* x, std::int64_t middle) {
    const std::int64_t width = x->type.shape.back().value();
    Value* inner = c.b.relu(c.b.matmul(x, c.input({width, middle})));
    return c.b.call("sigmoid", {c.b.matmul(inner, c.input({middle, width}))});
  };
  const Case cases[] = {
      {"two_products_of_one_row", 1, 2,
       [&](PlanCheck& c) {
         c.out("y", excite(c, c.input({1, 200}), 20));
       }},
      {"a_mean_and_two_products", 1, 3,
       [&](PlanCheck& c) {
         Value* mean = c.b.reduce("reduce_mean", c.input({49, 96}), {0}, true);
         c.out("mean", mean);
         c.out("y", excite(c, mean, 24));
       }},
      {"what_is_read_by_others_is_stored", 2, 3,
       [&](PlanCheck& c) {
         Value* y = excite(c, c.input({1, 200}), 20);
         c.out("y", y);
         c.out("z", c.b.mul(c.b.expand(y, {Expr(70000), Expr(200)}), c.input({70000, 200})));
       }},
      {"a_group_for_each_head", 1, 2,
       [](PlanCheck& c) {
         c.out("y", attended(c, c.input({12, 1, 64}), c.input({12, 70, 64}), c.input({12, 70, 64})));
       }},
      {"long_work_stays_with_many_groups", 2, 2,
       [](PlanCheck& c) {
         Value* x = c.b.relu(c.b.matmul(c.input({1, 2048}), c.input({2048, 2048})));
         c.out("y", c.b.matmul(x, c.input({2048, 64})));
       }},
      {"a_few_kb_of_a_slice_are_a_group_s", 1, 2,
       [](PlanCheck& c) {
         Value* x = c.input({4, 7000});
         c.out("y", c.b.mul(x, c.b.reduce("reduce_sum", x, {1}, true)));
       }},
      {"megabytes_of_a_slice_are_the_device_s", 2, 2,
       [](PlanCheck& c) {
         Value* x = c.input({4, 700000});
         c.out("y", c.b.mul(x, c.b.reduce("reduce_mean", x, {1}, true)));
       }},
      {"what_reads_across_heads_is_no_part_of_their_chain", 2, 3,
       [](PlanCheck& c) {
         Value* y = attended(c, c.input({12, 1, 64}), c.input({12, 70, 64}), c.input({12, 70, 64}));
         c.out("y", c.b.matmul(c.b.reshape(y, {Expr(1), Expr(768)}), c.input({768, 1024})));
       }},
  };
  for (const Case& one : cases) {
    CAPTURE(one.claim);
    PlanCheck check;
    one.make(check);
    CHECK(launches(check, {}, true) == one.launches);
    CHECK(launches(check) == one.apart);
    check.check(2e-6, false);
  }
}

TEST_CASE("sums read past keys and new ones where they are") {
  for (const std::int64_t length : {1, 63, 300}) {
    CAPTURE(length);
    PlanCheck check;
    Builder& b = check.b;
    check.symbols = {{"P", length}};
    const auto grown = [&](int seed, Value* row) {
      Value* past = check.input(random_tensor(DType::f32, {4, length, 16}, seed), {"", "P", ""});
      Value* all = b.concat({past, row}, 1);
      check.out(fmt::format("present {}", seed), all);
      return all;
    };
    Value* y = check.input(random_tensor(DType::f32, {4, 1, 16}, 9));
    for (const int layer : {1, 2}) {
      Value *keys = grown(layer * 10, y), *values = grown(layer * 10 + 2, y);
      y = attended(check, y, keys, values);
    }
    check.out("y", y);
    CHECK(launches(check) == 6);
    CHECK(launches(check, {}, true) == 6);  // of unknown size: no chains
    CHECK(launches(check, kCopied) == 7);
    check.check(2e-6, false);
  }
}

TEST_CASE("copies that sums alone read are written last") {
  struct Copy {
    const char* claim;
    bool last;
    std::function<void(PlanCheck&, Value*)> read;
  };
  const Copy cases[] = {
      {"a_result_that_a_sum_reads", true, [](PlanCheck& c, Value* x) { c.out("y", c.b.reduce("reduce_sum", x, {1}, false)); }},
      {"one_that_a_product_reads_many_times", false,
       [](PlanCheck& c, Value* x) {
         c.out("y", c.b.matmul(c.input({3, 40, 71}), x));
       }},
  };
  for (const Copy& one : cases) {
    CAPTURE(std::string(one.claim));
    PlanCheck check;
    Value* x = check.b.concat({check.input({3, 70, 8}), check.input({3, 1, 8})}, 1);
    check.out("x", x);
    one.read(check, x);
    CompileOptions options = default_options();
    options.target = find_target("gpu");
    options.disabled = {"fuse_in_work_group", "horizontal_fusion"};
    const Compiled made = compile(module_of(copy_graph(*check.graph)), options);
    const std::vector<Step>& steps = made.schedule.entries[0].steps;
    CHECK(made.schedule.kernel(steps.back()).is_copy == one.last);
    check.check(2e-6, false);
  }
}

TEST_CASE("weights of the last of several sums are asked for before the first") {
  for (const std::int64_t width : {64, 256, 768}) {
    PlanCheck check;
    check.out("y", check.b.matmul(norm(check, check.input({1, width})), check.input({96, width}), false, true));
    check.check(2e-6, false);
  }
}

}  // namespace
}  // namespace oclc::test

// Products of halves: which contractions take them, and the numbers that come out.
#include "compiler/codegen/contraction/cpu/contraction_strassen.h"

#include <algorithm>
#include <functional>

#include "compiler/contraction/cpu/strassen.h"
#include "tests/codegen/plan_check.h"
#include "tests/support/choices.h"

namespace oclc::test {
namespace {

CompileOptions halving_options(const std::string& target, const std::string& precision = "fp32") {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.precision = precision;
  return options;
}

// Kernels that multiply halves.
int halved_kernels(const PlanCheck& check, const CompileOptions& options) {
  return count_of(compile(module_of(copy_graph(*check.graph)), options).schedule, StrategyId::strassen);
}

// Products that the pass asks to be of halves.
std::ptrdiff_t asked_products(const Schedule& schedule) {
  return std::count_if(schedule.kernels.begin(), schedule.kernels.end(),
                       [](const Kernel& k) { return k.contraction && k.contraction->asked == StrategyId::strassen; });
}

Value* factor(PlanCheck& check, std::int64_t inner, std::int64_t columns) {
  return check.b.constant(random_tensor(DType::f32, {inner, columns}, 7, -1, 1));
}

TEST_CASE("tiles of halves fit the registers and the cache, and cover the product") {
  for (const std::string name : {"cpu", "cpu-256"}) {
    Target target = find_target(name);
    for (const std::int64_t rows : {96, 197, 1024}) {
      for (const std::int64_t inner : {128, 320, 768, 3072}) {
        const auto t = choose_strassen_tiles({rows, 700, inner}, target);
        REQUIRE(t);
        CHECK(t->rows * t->vectors + t->vectors + 1 <= target.vector_registers);
        CHECK(inner % (2 * t->terms) == 0);
        CHECK(t->terms % target.vector_width == 0);
        CHECK(7 * t->row_tiles * t->rows * t->terms * 4 <= target.l2_bytes / 2);
        CHECK((t->row_tiles - 1) * t->rows * 2 < rows);
      }
    }
    // No chunk of whole vectors divides the terms.
    CHECK_FALSE(choose_strassen_tiles({128, 768, 762}, target));
  }
}

TEST_CASE("large products with constant weights are of halves where fp32 or fast allows and sums cost little") {
  PlanCheck check;
  check.out("y", check.b.matmul(check.input({128, 768}), factor(check, 768, 768)));
  for (const std::string name : {"cpu-256", "cpu-zen"}) {
    for (const std::string precision : {"fp32", "fast"}) CHECK(halved_kernels(check, halving_options(name, precision)) == 1);
    CHECK(halved_kernels(check, halving_options(name, "strict")) == 0);
  }
  for (const std::string other : {"cpu", "gpu"}) CHECK(halved_kernels(check, halving_options(other)) == 0);
  CompileOptions without = halving_options("cpu-256");
  without.disabled = {"strassen"};
  CHECK(halved_kernels(check, without) == 0);
}

TEST_CASE("weights of products of halves are stored once, not as seven combinations") {
  PlanCheck check;
  check.out("y", check.b.matmul(check.input({128, 768}), factor(check, 768, 768)));
  const CompileOptions options = halving_options("cpu-256");
  REQUIRE(halved_kernels(check, options) == 1);
  CHECK(compile(module_of(copy_graph(*check.graph)), options).plan.constants.bytes() == 768 * 768 * 4);
}

TEST_CASE(
    "few or unknown rows, weights of run time where registers are few, and an error that is too large keep eight products") {
  const CompileOptions options = halving_options("cpu-256");
  {
    PlanCheck few;
    few.out("y", few.b.matmul(few.input({48, 768}), factor(few, 768, 768)));
    CHECK(halved_kernels(few, options) == 0);
  }
  {
    PlanCheck unknown;
    Value* x = unknown.input(DType::f32, {128, 768}, -1, 1, {"N", ""});
    unknown.out("y", unknown.b.matmul(x, factor(unknown, 768, 768)));
    CHECK(halved_kernels(unknown, options) == 0);
  }
  {
    PlanCheck given;
    given.out("y", given.b.matmul(given.input({128, 768}), given.input({768, 768})));
    CHECK(halved_kernels(given, options) == 0);
    CHECK(halved_kernels(given, halving_options("cpu")) == 1);
  }
  {
    PlanCheck check;
    check.out("y", check.b.matmul(check.input({128, 768}), factor(check, 768, 768)));
    Schedule schedule = compile(module_of(copy_graph(*check.graph)), halving_options("cpu-256", "strict")).schedule;
    strassen(schedule, {.target = options.target, .error_budget = 2 * 1e-8});
    CHECK(asked_products(schedule) == 0);
    strassen(schedule, {.target = options.target, .error_budget = 2 * 2.5e-6});
    CHECK(asked_products(schedule) == 1);
  }
}

TEST_CASE("products of halves: odd rows, ragged columns, prologues and epilogues, fused and unfused") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("odd rows", b.matmul(check.input({255, 768}), factor(check, 768, 768)));
  check.out("ragged columns", b.matmul(check.input({256, 1024}), factor(check, 1024, 1048)));
  check.out("columns of no whole vectors", b.matmul(check.input({127, 512}), factor(check, 512, 1525)));
  check.out("computed rows", b.matmul(b.relu(check.input({128, 1024})), factor(check, 1024, 768)));
  check.out("an epilogue", b.relu(b.add(b.matmul(check.input({127, 768}), factor(check, 768, 768)), check.input({127, 768}))));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  CHECK(halved_kernels(check, halving_options("cpu-256")) >= 4);
  for (const std::string target : {"cpu", "cpu-256"})
    for (const bool fuse : {true, false}) CHECK(check.problem(target, fuse, 5e-6, wanted) == "");
}

TEST_CASE("products of halves of run time: rows or terms side by side on either side, odd ends, computed operands") {
  const auto turned = [](Builder& b, Value* x) { return b.transpose(x, {1, 0}); };
  const std::vector<std::pair<std::string, std::function<Value*(PlanCheck&, Builder&)>>> cases = {
      {"given",
       [&](PlanCheck& c, Builder& b) {
         return b.matmul(c.input({255, 768}), c.input({768, 400}));
       }},
      {"right turned",
       [&](PlanCheck& c, Builder& b) {
         return b.matmul(c.input({256, 768}), turned(b, c.input({767, 768})));
       }},
      {"left turned",
       [&](PlanCheck& c, Builder& b) {
         return b.matmul(turned(b, c.input({1568, 256})), c.input({1568, 384}));
       }},
      {"odd rows turned",
       [&](PlanCheck& c, Builder& b) {
         return b.matmul(turned(b, c.input({512, 509})), c.input({512, 769}));
       }},
      {"both turned",
       [&](PlanCheck& c, Builder& b) {
         return b.matmul(turned(b, c.input({768, 256})), turned(b, c.input({400, 768})));
       }},
      {"computed",
       [&](PlanCheck& c, Builder& b) {
         return b.matmul(turned(b, b.relu(c.input({512, 512}))), b.relu(c.input({512, 384})));
       }},
      {"computed rows", [&](PlanCheck& c, Builder& b) {
         return b.relu(b.matmul(b.relu(c.input({256, 1024})), c.input({1024, 384})));
       }}};
  for (const auto& [name, product] : cases) {
    CAPTURE(name);
    PlanCheck check;
    check.out("y", product(check, check.b));
    CHECK(halved_kernels(check, halving_options("cpu")) == 1);
    const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
    CHECK(check.problem("cpu", true, 5e-6, wanted) == "");
  }
}

TEST_CASE("products that no other product needs share an error, those in a row add theirs") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({512, 512});
  for (int i = 0; i < 3; ++i) check.out("side by side " + std::to_string(i), b.matmul(x, check.input({512, 512})));
  Value* row = check.input({512, 512});
  for (int i = 0; i < 3; ++i) row = b.matmul(row, check.input({512, 512}));
  check.out("in a row", row);
  Schedule schedule = compile(module_of(copy_graph(*check.graph)), halving_options("cpu", "strict")).schedule;
  // One error for the four that end a row, and another for one of the two before.
  strassen(schedule, {.target = find_target("cpu"), .error_budget = 2 * 2.7e-7 * 1.5});
  CHECK(asked_products(schedule) == 5);
}

}  // namespace
}  // namespace oclc::test

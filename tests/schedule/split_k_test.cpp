// Long sums of few results: cut into parts, stages that need one another, several sums of the same loads.
#include <fmt/format.h>

#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

std::string source_for(const PlanCheck& check, const char* target) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.target.has.fp64 = true;
  return PlanRunner(module_of(copy_graph(*check.graph)), options).source();
}

void check_on_gpus(const PlanCheck& check, double tolerance = 2e-6) {
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const char* target : {"gpu", "h200"}) CHECK(check.problem(target, true, tolerance, wanted) == "");
}

}  // namespace

TEST_CASE("the mean and the variance of channels are computed in parts, in one pass") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({16, 60, 70, 12});
  Value* mean = b.reduce("reduce_mean", x, {0, 1, 2}, true);
  Value* rest = b.sub(x, mean);
  check.out("normalized", b.div(mean, b.reduce("reduce_mean", b.mul(rest, rest), {0, 1, 2}, true)));
  const std::string source = source_for(check, "h200");
  CHECK(source.find("_parts_tile") != std::string::npos);
  CHECK(source.find("_parts1_tile") == std::string::npos);
  check_on_gpus(check);
}

TEST_CASE("the variance of what is computed, and far from zero, loses nothing in one pass") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = b.add(b.relu(check.input({16, 60, 70, 12})), b.scalar(DType::f32, 1000.0));
  Value* mean = b.reduce("reduce_mean", x, {0, 1, 2}, true);
  Value* rest = b.sub(x, mean);
  check.out("variance", b.reduce("reduce_mean", b.mul(rest, rest), {0, 1, 2}, true));
  CHECK(source_for(check, "h200").find("_parts1_tile") == std::string::npos);
  // x itself is rounded to 6e-5, against a deviation of 0.3.
  check_on_gpus(check, 2e-5);
}

TEST_CASE("sums that need one another otherwise are computed in parts one after the other") {
  PlanCheck check;
  Builder& b = check.b;
  Value *x = check.input({16, 60, 70, 12}), *g = check.input({16, 60, 70, 12});
  Value* mean = b.reduce("reduce_mean", x, {0, 1, 2}, true);
  Value* rest = b.sub(x, mean);
  check.out("weighted", b.div(mean, b.add(b.reduce("reduce_mean", b.mul(rest, b.mul(rest, g)), {0, 1, 2}, true),
                                          b.scalar(DType::f32, 2.0))));
  CHECK(source_for(check, "h200").find("_parts1_tile") != std::string::npos);
  check_on_gpus(check);
}

TEST_CASE("sums of the same elements stay together in their parts") {
  PlanCheck check;
  Builder& b = check.b;
  Value *x = check.input({16, 60, 70, 12}), *g = check.input({16, 60, 70, 12});
  check.out("sum", b.reduce("reduce_sum", g, {0, 1, 2}, false));
  check.out("product", b.relu(b.reduce("reduce_sum", b.mul(x, g), {0, 1, 2}, false)));
  const std::string source = source_for(check, "h200");
  CHECK(source.find("_parts_tile") != std::string::npos);
  CHECK(source.find("_parts1_tile") == std::string::npos);
  check_on_gpus(check, 1e-5);
}

TEST_CASE("where no axis is long enough, parts are of two of them") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({4, 40, 50, 8});
  Value* mean = b.reduce("reduce_mean", x, {0, 1, 2}, true);
  Value* rest = b.sub(x, mean);
  check.out("mean", mean);
  check.out("variance", b.reduce("reduce_mean", b.mul(rest, rest), {0, 1, 2}, true));
  CHECK(source_for(check, "h200").find("part<100") != std::string::npos);
  check_on_gpus(check);
}

TEST_CASE("few sums of few terms are shared by the work-items of a group, many are not") {
  PlanCheck check;
  check.out("few", check.b.reduce("reduce_sum", check.input({40, 50}), {0}, false));
  CHECK(source_for(check, "h200").find("work-items each") != std::string::npos);
  check_on_gpus(check);
  PlanCheck many;
  many.out("many", many.b.reduce("reduce_sum", many.input({40, 9000}), {0}, false));
  CHECK(source_for(many, "h200").find("work-items each") == std::string::npos);
}

TEST_CASE("short sums, many results and other reductions stay whole") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("short", b.reduce("reduce_sum", check.input({30, 40}), {0}, false));
  check.out("many", b.reduce("reduce_sum", check.input({80, 9000}), {0}, false));
  check.out("largest", b.reduce("reduce_max", check.input({5000, 40}), {0}, false));
  CHECK(source_for(check, "h200").find("_parts") == std::string::npos);
  check_on_gpus(check);
}

TEST_CASE("means of a few numbers carry what rounding takes, sums of products do not") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = b.add(check.input({40, 49, 300}), b.scalar(DType::f32, 2.0));
  check.out("mean", b.reduce("reduce_mean", x, {1}, false));
  const std::string means = source_for(check, "h200");
  CHECK(means.find("s0_rest") != std::string::npos);
  check_on_gpus(check, 1.2e-7);
  PlanCheck products;
  Value *u = products.input({40, 49, 300}), *v = products.input({40, 49, 300});
  products.out("products", products.b.reduce("reduce_sum", products.b.mul(u, v), {1}, false));
  CHECK(source_for(products, "h200").find("s0_rest") == std::string::npos);
  check_on_gpus(products);
}

TEST_CASE("work-items of a GPU compute four neighbours where there are many, and read whole vectors") {
  struct Size {
    Ints shape;
    bool vectors;
  };
  for (const Size& size : {Size{{40, 100, 300}, true}, Size{{40, 100, 30}, false}, Size{{40, 150, 301}, false}}) {
    CAPTURE(size.shape[2]);
    PlanCheck check;
    Builder& b = check.b;
    const std::int64_t channels = size.shape[2];
    Value* x = check.input(size.shape);
    check.out("y", b.relu(b.add(b.mul(x, check.input({channels})), check.input({channels}))));
    const std::string source = source_for(check, "h200");
    CHECK((source.find("a vector a work-item") != std::string::npos) == size.vectors);
    check_on_gpus(check);
  }
}

TEST_CASE("long sums of few columns are cut on a CPU, whose work-items read pieces of rows in strips") {
  PlanCheck check;
  Builder& b = check.b;
  for (const std::int64_t channels : {48, 64, 256}) {
    CAPTURE(channels);
    Value *x = check.input({4, 60, 70, channels}), *g = check.input({4, 60, 70, channels});
    Value* mean = b.reduce("reduce_mean", x, {0, 1, 2}, true);
    Value* rest = b.sub(x, mean);
    check.out(fmt::format("variance {}", channels), b.reduce("reduce_mean", b.mul(rest, rest), {0, 1, 2}, true));
    check.out(fmt::format("sum {}", channels), b.reduce("reduce_sum", b.mul(x, g), {0, 1, 2}, false));
  }
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const char* target : {"cpu", "cpu-256", "cpu-128"}) {
    CAPTURE(target);
    CHECK(source_for(check, target).find("partial sums of") != std::string::npos);
    for (const bool fuse : {true, false}) CHECK(check.problem(target, fuse, 1e-5, wanted) == "");
  }
}

TEST_CASE("sums of many columns are cut into blocks of whole rows on a CPU with many registers, short ones are not") {
  const auto check_of = [](PlanCheck& check, std::int64_t rows, std::int64_t columns) {
    Value* x = check.input({rows, columns});
    Value* rest = check.b.sub(x, check.b.reduce("reduce_mean", x, {0}, true));
    check.out("variance", check.b.reduce("reduce_mean", check.b.mul(rest, rest), {0}, false));
    check.out("sum", check.b.reduce("reduce_sum", x, {0}, false));
  };
  PlanCheck many, ragged, few;
  check_of(many, 2560, 2048);
  check_of(ragged, 3000, 1001);
  check_of(few, 64, 2048);
  for (const PlanCheck* check : {&many, &ragged}) {
    const auto wanted = evaluate(*check->graph, check->inputs, check->symbols);
    for (const char* target : {"cpu", "cpu-256"}) {
      CAPTURE(target);
      const bool cut = source_for(*check, target).find("partial sums of") != std::string::npos;
      CHECK(cut == (std::string_view(target) == "cpu"));
      CHECK(check->problem(target, true, 1e-5, wanted) == "");
    }
  }
  CHECK(source_for(many, "cpu").find("oclc_prefetch(") == std::string::npos);
  CHECK(source_for(few, "cpu").find("partial sums of") == std::string::npos);
}

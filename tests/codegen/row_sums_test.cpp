// Sums over rows on a CPU: cut into ranges of rows, each added up row by row.
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

std::string source_for(const PlanCheck& check) {
  CompileOptions options = default_options();
  options.target = find_target("cpu");
  options.disabled = {"resident"};  // one launch of both kernels calls them otherwise
  return PlanRunner(module_of(copy_graph(*check.graph)), options).source();
}

bool is_cut(const std::string& source) { return source.find("_parts_tile") != std::string::npos; }
bool is_by_rows(const std::string& source) { return source.find("whole rows a tile") != std::string::npos; }

void check_on_cpus(const PlanCheck& check, double tolerance = 2e-6) {
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const char* target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, tolerance, wanted) == "");
    CHECK(check.problem(target, true, tolerance, wanted, "strict") == "");
  }
  CHECK(check.problem("cpu", false, tolerance, wanted) == "");
}

}  // namespace

TEST_CASE("column sums are cut into ranges of rows, also where columns are no whole vectors") {
  for (const std::int64_t columns : {64, 65, 77, 200}) {
    CAPTURE(columns);
    PlanCheck check;
    check.out("sum", check.b.reduce("reduce_sum", check.input({2079, columns}), {0}, false));
    const std::string source = source_for(check);
    CHECK(is_cut(source));
    CHECK(is_by_rows(source));
    check_on_cpus(check);
  }
}

TEST_CASE("long sums of rows carry what rounding takes") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("sum", b.reduce("reduce_sum", b.add(check.input({60000, 8}), b.scalar(DType::f32, 3.0)), {0}, false));
  CHECK(is_by_rows(source_for(check)));
  check_on_cpus(check, 2e-7);
}

TEST_CASE("the mean and the variance of channels on a CPU are computed in one pass over rows") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = b.add(check.input({3, 50, 35, 40}), b.scalar(DType::f32, 10.0));
  Value* mean = b.reduce("reduce_mean", x, {0, 1, 2}, true);
  Value* rest = b.sub(x, mean);
  check.out("mean", mean);
  check.out("variance", b.reduce("reduce_mean", b.mul(rest, rest), {0, 1, 2}, true));
  const std::string source = source_for(check);
  CHECK(is_cut(source));
  CHECK(source.find("_parts1_tile") == std::string::npos);
  check_on_cpus(check, 5e-6);
}

TEST_CASE("several sums of rows share what they read, and epilogues follow the sum of the ranges") {
  PlanCheck check;
  Builder& b = check.b;
  Value *x = check.input({8, 300, 60}), *g = check.input({8, 300, 60}), *scale = check.input({60});
  check.out("sum", b.reduce("reduce_sum", g, {0, 1}, false));
  check.out("product", b.relu(b.mul(scale, b.reduce("reduce_sum", b.mul(b.sub(x, scale), g), {0, 1}, false))));
  const std::string source = source_for(check);
  CHECK(is_cut(source));
  CHECK(is_by_rows(source));
  check_on_cpus(check, 1e-5);
}

TEST_CASE("sums enough for all cores stay whole, and are added up row by row, one that needs another after it") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input({5, 1400, 100});
  Value* mean = b.reduce("reduce_mean", x, {1}, true);
  Value* rest = b.sub(x, mean);
  check.out("deviation", b.sqrt(b.reduce("reduce_mean", b.mul(rest, rest), {1}, true)));
  const std::string source = source_for(check);
  CHECK(!is_cut(source));
  CHECK(is_by_rows(source));
  check_on_cpus(check);
}

TEST_CASE("one of the operands may have its rows elsewhere") {
  PlanCheck check;
  Builder& b = check.b;
  Value *x = check.input({60, 70, 40}), *turned = b.transpose(check.input({70, 60, 40}), {1, 0, 2});
  check.out("sum", b.reduce("reduce_sum", b.mul(x, turned), {0, 1}, false));
  CHECK(is_by_rows(source_for(check)));
  check_on_cpus(check);
}

TEST_CASE("short sums, padded rows and other reductions are not added up row by row") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("few rows", b.reduce("reduce_sum", check.input({60, 9000}), {0}, false));
  check.out("few bytes", b.reduce("reduce_sum", check.input({300, 64}), {0}, false));
  check.out("largest", b.reduce("reduce_max", check.input({3000, 64}), {0}, false));
  check.out("pieces of rows", b.reduce("reduce_sum", b.slice_axis(check.input({3000, 128}), 1, 32, 64), {0}, false));
  CHECK(!is_by_rows(source_for(check)));
  CHECK(!is_cut(source_for(check)));
  check_on_cpus(check);
}

TEST_CASE("a prime number of rows has no ranges, and cores share its columns") {
  PlanCheck check;
  check.out("sum", check.b.reduce("reduce_sum", check.input({4099, 40}), {0}, false));
  CHECK(!is_by_rows(source_for(check)));
  CHECK(!is_cut(source_for(check)));
  check_on_cpus(check);
}

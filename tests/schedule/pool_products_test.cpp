// Largest results of windows in the launch of the product that computes them: which maxima are, and that elsewhere than on
// matrix units each group goes over the results of its windows.
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

CompileOptions pool_options(const std::string& precision) {
  CompileOptions options = default_options();
  options.target = find_target("h200");
  options.target.has.fp64 = true;
  options.precision = precision;
  options.disabled = {"small_gemm"};
  return options;
}

// A convolution of few results with long sums, whose groups share terms, with a bias and relu.
Value* layer(PlanCheck& check, std::int64_t height, std::int64_t width, std::int64_t channels = 512,
             std::int64_t results = 128) {
  Builder& b = check.b;
  Value* x = b.transpose(check.input({1, height, width, channels}), {0, 3, 1, 2});
  Value* w = b.constant(random_tensor(DType::f32, {results, channels, 3, 3}, 3, -0.1, 0.1));
  return b.relu(b.conv(x, w, b.constant(random_tensor(DType::f32, {results}, 5)), {.pads = {1, 1, 1, 1}}));
}

std::size_t products_of_windows(const PlanCheck& check, const CompileOptions& options) {
  const PlanRunner runner(module_of(copy_graph(*check.graph)), options);
  std::size_t count = 0;
  for (const Kernel& k : runner.compiled().schedule.kernels) count += k.contraction && !k.contraction->windows.empty() ? 1 : 0;
  return count;
}

// Of rounded weights.
constexpr double kTolerance = 2e-3;

const PoolOptions kHalves{.kernel = {2, 2}, .strides = {2, 2}};

// One product stores the largest results, which are right and the same as those of two launches.
void check_joined(const PlanCheck& check) {
  const CompileOptions options = pool_options("tf32");
  CHECK(products_of_windows(check, options) == 1);
  PlanRunner runner(module_of(copy_graph(*check.graph)), options);
  CHECK(runner.source().find("largest = oclc_max(largest, v)") != std::string::npos);
  const auto found = runner.run(check.inputs, check.symbols);
  CHECK(oclc::difference(found, evaluate(*check.graph, check.inputs, check.symbols), kTolerance) == "");
  CompileOptions apart = options;
  apart.disabled.push_back("pool_products");
  CHECK(products_of_windows(check, apart) == 0);
  PlanRunner two(module_of(copy_graph(*check.graph)), apart);
  CHECK(oclc::difference(found, two.run(check.inputs, check.symbols), kTolerance) == "");
}

}  // namespace

TEST_CASE("the largest results of windows of two lines, stored by channels last and by channels first") {
  PlanCheck check;
  check.out("windows", check.b.max_pool(layer(check, 14, 12), kHalves));
  check_joined(check);
  PlanCheck flat;
  Builder& b = flat.b;
  Value* pooled = b.max_pool(layer(flat, 14, 14), kHalves);
  flat.out("product",
           b.matmul(b.reshape(pooled, exprs({1, 128 * 49})), b.constant(random_tensor(DType::f32, {128 * 49, 40}, 9))));
  CHECK(products_of_windows(flat, pool_options("tf32")) == 1);
  PlanRunner runner(module_of(copy_graph(*flat.graph)), pool_options("tf32"));
  CHECK(oclc::difference(runner.run(flat.inputs, flat.symbols), evaluate(*flat.graph, flat.inputs, flat.symbols), kTolerance) ==
        "");
}

TEST_CASE("windows of one line, and of three") {
  for (const auto& [lines, width] : {std::pair<std::int64_t, std::int64_t>{1, 4}, {3, 1}}) {
    PlanCheck check;
    check.out("windows", check.b.max_pool(layer(check, 12, 16), {.kernel = {lines, width}, .strides = {lines, width}}));
    check_joined(check);
  }
}

TEST_CASE("maxima of windows that overlap, are cut off or padded stay launches, as do means and what others read too") {
  const auto joined = [](const auto& build, const char* precision = "tf32") {
    PlanCheck check;
    build(check);
    return products_of_windows(check, pool_options(precision));
  };
  const auto pooled = [](PlanCheck& check) { check.out("windows", check.b.max_pool(layer(check, 14, 14), kHalves)); };
  CHECK(joined(pooled) == 1);
  CHECK(joined(pooled, "fp32") == 0);
  CHECK(joined([](PlanCheck& c) {
          c.out("overlap", c.b.max_pool(layer(c, 15, 15), {.kernel = {3, 3}, .strides = {2, 2}}));
        }) == 0);
  CHECK(joined([](PlanCheck& c) { c.out("cut off", c.b.max_pool(layer(c, 14, 15), kHalves)); }) == 0);
  CHECK(joined([](PlanCheck& c) {
          c.out("padded", c.b.max_pool(layer(c, 14, 14), {.kernel = {2, 2}, .strides = {2, 2}, .pads = {1, 1, 1, 1}}));
        }) == 0);
  CHECK(joined([](PlanCheck& c) { c.out("mean", c.b.avg_pool(layer(c, 14, 14), kHalves)); }) == 0);
  CHECK(joined([](PlanCheck& c) {
          Value* y = layer(c, 14, 14);
          c.out("windows", c.b.max_pool(y, kHalves));
          c.out("all", c.b.mul(y, 2));
        }) == 0);
}

// Weights that are integers of 8 or 4 bits times a scale: which have that form, and what products of few rows make of them.
#include <cmath>

#include "compiler/codegen/contraction/cpu/pack_narrow.h"
#include "compiler/contraction/multiples.h"
#include "tests/codegen/plan_check.h"
#include "tests/support/choices.h"

namespace oclc::test {
namespace {

PackedOperand narrow_matrix(std::int64_t columns) { return {.inner_stride = columns, .column_stride = 1, .tap_offsets = {0}}; }

// Integers of [low, high] times a scale of their column and block of terms.
HostTensor quantised(std::int64_t inner, std::int64_t columns, int low, int high, std::int64_t block) {
  HostTensor w(DType::f32, {inner, columns});
  for (std::int64_t k = 0; k < inner; ++k) {
    for (std::int64_t n = 0; n < columns; ++n) {
      const std::int64_t q = low + (k * 37 + n * 11 + k * n % 7) % (high - low + 1);
      const float scale = 0.01f + 0.0001f * static_cast<float>(n % 50) + 0.003f * static_cast<float>(k / block % 3);
      w.set(k * columns + n, static_cast<float>(q) * scale);
    }
  }
  return w;
}

// Kernels that read weights of so few bits.
int narrow_kernels(const PlanCheck& check, const std::string& target, StrategyId strategy) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  return count_of(compile(module_of(copy_graph(*check.graph)), options).schedule, strategy);
}

TEST_CASE("integers times a scale are found, with the scale that they have") {
  for (const float scale : {0.01f, 0.37f, 1e-6f, 3.0f}) {
    CAPTURE(scale);
    std::vector<float> numbers;
    for (const int q : {-128, 5, 0, 77, 127, -3}) numbers.push_back(static_cast<float>(q) * scale);
    const auto found = multiples_of(numbers, 8);
    REQUIRE(found);
    CHECK(found->scale == scale);
    CHECK(found->low == -128);
    CHECK(found->high == 127);
    CHECK_FALSE(multiples_of(numbers, 4));
  }
}

TEST_CASE("what is no multiple of a scale, not finite or too far apart is not found") {
  const std::vector<float> any{0.123f, 0.4567f, -0.9871f}, endless{1, INFINITY}, far{1, 300}, tiny{1e-38f, 3e-38f, 1e-44f};
  CHECK_FALSE(multiples_of(any, 8));
  CHECK_FALSE(multiples_of(endless, 8));
  CHECK_FALSE(multiples_of(far, 8));
  CHECK_FALSE(multiples_of(tiny, 8));
  const std::vector<float> zeros{0, 0};
  CHECK(multiples_of(zeros, 4)->scale == 0);
}

TEST_CASE("the form has the fewest bits and the longest blocks that hold the weights") {
  const auto form = [](const HostTensor& w) {
    return narrow_form(w, narrow_matrix(w.shape()[1]), 1, w.shape()[1], w.shape()[0]);
  };
  CHECK(form(quantised(512, 9, -8, 7, 512))->bits == 4);
  CHECK(form(quantised(512, 9, -8, 7, 32))->block == 32);
  CHECK(form(quantised(512, 9, -127, 127, 512))->bits == 8);
  CHECK(form(quantised(512, 9, -127, 127, 512))->block == 256);
  CHECK_FALSE(form(quantised(512, 9, -127, 127, 512))->offsets);
  CHECK(form(quantised(512, 9, 1, 15, 64))->offsets);
  CHECK_FALSE(form(random_tensor(DType::f32, {512, 9}, 3, -1, 1)));
}

TEST_CASE("few rows of weights of few bits give what floats give") {
  struct Case {
    std::int64_t rows, inner;
    int low, high;
    std::int64_t block;
    StrategyId strategy;
  };
  for (const Case& c : {Case{1, 256, -127, 127, 1024, StrategyId::quantized_8},
                        {3, 259, -128, 127, 1024, StrategyId::quantized_8},
                        {1, 256, -8, 7, 32, StrategyId::quantized_4},
                        {4, 257, 0, 15, 64, StrategyId::quantized_4},
                        {2, 250, 0, 255, 128, StrategyId::quantized_8}}) {
    CAPTURE(c.inner);
    CAPTURE(name_of(c.strategy));
    PlanCheck check;
    // More than the last cache holds.
    check.out("y", check.b.matmul(check.input({c.rows, c.inner}),
                                  check.b.constant(quantised(c.inner, 9001, c.low, c.high, c.block))));
    for (const char* target : {"cpu", "cpu-256", "cpu-amx"}) CHECK(narrow_kernels(check, target, c.strategy) == 1);
    const auto wanted = evaluate(*check.graph, check.inputs);
    for (const char* target : {"cpu", "cpu-256"}) CHECK(check.problem(target, true, 1e-6, wanted) == "");
  }
}

TEST_CASE("more rows, or other weights, are no products of narrow weights") {
  PlanCheck check;
  check.out("many", check.b.matmul(check.input({64, 1024}), check.b.constant(quantised(1024, 9000, -127, 127, 1024))));
  check.out("floats",
            check.b.matmul(check.input({1, 1024}), check.b.constant(random_tensor(DType::f32, {1024, 9000}, 3, -1, 1))));
  CHECK(narrow_kernels(check, "cpu", StrategyId::quantized_8) == 0);
  CHECK(narrow_kernels(check, "cpu", StrategyId::quantized_4) == 0);
}

}  // namespace
}  // namespace oclc::test

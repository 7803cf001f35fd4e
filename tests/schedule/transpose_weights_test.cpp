// Weights of a product of one row, as they lie in a plan for a GPU.
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/schedule/row_product.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

// Whether a kernel reads terms side by side: 200 of them, of 96 results.
bool is_turned(const PlanCheck& check, std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target("gpu");
  options.disabled = std::move(disabled);
  bool found = false;
  for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files)
    found = found || file.source.find("200*out_col") != std::string::npos;
  return found;
}

TEST_CASE("weights that one product of one row reads lie along its terms") {
  PlanCheck check;
  Builder& b = check.b;
  Value* weights = b.constant(random_tensor(DType::f32, {200, 96}, 3));
  check.out("y", b.relu(b.add(b.matmul(check.input({1, 200}), weights), b.constant(random_tensor(DType::f32, {96}, 4)))));
  CHECK(is_turned(check));
  CHECK_FALSE(is_turned(check, {"transpose_weights"}));
  check.check(2e-6, false);
}

TEST_CASE("weights with two readers, of many rows, or given when the plan runs stay as they are") {
  PlanCheck check;
  Builder& b = check.b;
  Value* weights = b.constant(random_tensor(DType::f32, {200, 96}, 3));
  check.out("one", b.matmul(check.input({1, 200}), weights));
  check.out("other", b.matmul(check.input({1, 200}), weights));
  check.out("many", b.matmul(check.input({70, 200}), b.constant(random_tensor(DType::f32, {200, 96}, 5))));
  check.out("given", b.matmul(check.input({1, 200}), check.input({200, 96})));
  CHECK_FALSE(is_turned(check));
  check.check(2e-6, false);
}

TEST_CASE("where products are rounded, weights of one row are shorts with a scale for each result") {
  const auto plan_of = [](const HostTensor& weights, const char* precision, double* error) {
    Graph graph;
    Builder b(graph, "layer");
    Value* x = graph.add_input("x", {DType::f32, {Expr(1), Expr(200)}});
    graph.add_output("y", b.relu(b.add(b.matmul(x, b.constant(weights)), b.constant(random_tensor(DType::f32, {96}, 4)))));
    CompileOptions options = default_options();
    options.target = find_target("h200");
    options.precision = precision;
    std::string all;
    for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) all += file.source;
    *error = compare_with_reference(graph, std::vector{random_tensor(DType::f32, {1, 200}, 5)}, options).max_rel;
    return all;
  };
  const std::string vectors = "convert_float4(";
  double error = 0;
  HostTensor weights = random_tensor(DType::f32, {200, 96}, 3);
  CHECK(plan_of(weights, "tf32", &error).find(vectors) != std::string::npos);
  CHECK(error < 5e-5);
  CHECK(plan_of(weights, "fp32", &error).find(vectors) == std::string::npos);
  CHECK(error < 2e-6);
  // One that is so large that those of its result would be rounded to few bits.
  weights.set(5, 1e4);
  CHECK(plan_of(weights, "tf32", &error).find(vectors) == std::string::npos);
}

// What words hold for element k of row n.
double unpacked(const HostTensor& packed, const RowProduct& p, std::int64_t n, std::int64_t k) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(packed.data()) + n * words_of_row(p.terms);
  const std::int64_t item = k / 4 % 8, number = k % 256 / 32 * 4 + k % 4;
  const auto bit = [&](std::int64_t i) {
    const std::int64_t at = number * 12 + i, word = at / 32;
    return words[k / 256 * 96 + word / 4 * 32 + item * 4 + word % 4] >> at % 32 & 1u;
  };
  int value = 0;
  for (std::int64_t i = 0; i < 12; ++i) value |= static_cast<int>(bit(i)) << i;
  std::uint16_t scales = 0;
  float unit = 0;
  std::memcpy(&scales, reinterpret_cast<const std::byte*>(words + p.terms / 256 * 96) + (k / 256 * 8 + item) * 2, 2);
  std::memcpy(&unit, reinterpret_cast<const std::uint32_t*>(packed.data()) + p.results * words_of_row(p.terms) + n, 4);
  return (value >= 2048 ? value - 4096 : value) * static_cast<double>(unit) * ((scales >> number / 8 * 4 & 15) + 1);
}

TEST_CASE("weights in 12 bits have a scale for each eight, and are not taken where that rounds them too much") {
  RowProduct p;
  p.results = 3;
  p.terms = 512;
  HostTensor weights = random_tensor(DType::f32, {3, 512}, 7, -0.5, 0.5);
  for (std::int64_t k = 0; k < 512; ++k) weights.set(512 + k, 0);
  const auto packed = in_twelve_bits(weights, p);
  REQUIRE(packed);
  CHECK(packed->elements() == 3 * (words_of_row(512) + 1));
  for (std::int64_t n = 0; n < 3; ++n) {
    for (std::int64_t k = 0; k < 512; ++k)
      CHECK(std::abs(unpacked(*packed, p, n, k) - weights.at(n * 512 + k)) <= 0.5 / 2047 / 1.99);
  }
  weights.set(5, 40);
  CHECK(!in_twelve_bits(weights, p));
  weights.set(5, std::numeric_limits<double>::infinity());
  CHECK(!in_twelve_bits(weights, p));
}

TEST_CASE("where products are rounded, many weights of one row have 12 bits") {
  Graph graph;
  Builder b(graph, "layer");
  Value* x = graph.add_input("x", {DType::f32, {Expr(1), Expr(1024)}});
  HostTensor weights = random_tensor(DType::f32, {1024, 4001}, 3);
  const auto plan_of = [&](const char* precision, double* error) {
    CompileOptions options = default_options();
    options.target = find_target("h200");
    options.precision = precision;
    std::string all;
    for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) all += file.source;
    *error = compare_with_reference(graph, std::vector{random_tensor(DType::f32, {1, 1024}, 5)}, options).max_rel;
    return all;
  };
  graph.add_output("y", b.relu(b.add(b.matmul(x, b.constant(weights)), b.constant(random_tensor(DType::f32, {4001}, 4)))));
  double error = 0;
  CHECK(plan_of("tf32", &error).find("oclc_dot_twelve(") != std::string::npos);
  CHECK(error < 3e-4);
  CHECK(error > 1e-6);
  CHECK(plan_of("fp32", &error).find("oclc_dot_twelve(") == std::string::npos);
  CHECK(error < 2e-6);
}

}  // namespace
}  // namespace oclc::test

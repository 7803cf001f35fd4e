// Weights in 20 and 24 bits: what they are rounded to, which products take them, and the numbers that come out.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/codegen/contraction/cpu/contraction_quantized.h"
#include "compiler/codegen/contraction/cpu/pack_short.h"
#include "tests/codegen/plan_check.h"
#include "tests/support/choices.h"

namespace oclc::test {
namespace {

// The weight matrix [inner][columns] that the panels of one group and tap stand for.
std::vector<double> unpacked(const HostTensor& packed, const ShortLayout& layout) {
  const std::int64_t width = layout.panel_width, panels = (layout.columns + width - 1) / width;
  std::vector<double> all(static_cast<std::size_t>(layout.inner * layout.columns));
  const std::byte* at = packed.data();
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    for (std::int64_t k0 = 0; k0 < layout.inner; k0 += 256) {
      const std::byte* const scales = at;
      at += width * 4;
      for (std::int64_t k1 = k0; k1 < std::min(layout.inner, k0 + 256);
           k1 += layout.step(), at += width * (2 * layout.step() + 4)) {
        for (std::int64_t k = k1; k < std::min(layout.inner, k1 + layout.step()); ++k) {
          for (std::int64_t n = panel * width; n < std::min(layout.columns, (panel + 1) * width); ++n) {
            const std::int64_t j = n - panel * width;
            float scale = 0;
            std::int16_t upper = 0;
            std::uint32_t lower = 0;
            std::memcpy(&scale, scales + j * 4, 4);
            std::memcpy(&upper, at + ((k - k1) * width + j) * 2, 2);
            std::memcpy(&lower, at + width * 2 * layout.step() + j * 4, 4);
            const std::uint32_t of_upper = 1u << layout.lower_bits;
            const int number =
                upper * static_cast<int>(of_upper) + static_cast<int>((lower >> layout.lower_bits * (k - k1)) % of_upper);
            all[static_cast<std::size_t>(k * layout.columns + n)] = number * static_cast<double>(scale);
          }
        }
      }
    }
  }
  CHECK(at == packed.data() + packed.elements() * 4);
  return all;
}

PackedOperand matrix(std::int64_t columns) { return {.inner_stride = columns, .column_stride = 1, .tap_offsets = {0}}; }

CompileOptions options_for(const std::string& target, const std::string& precision) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.precision = precision;
  return options;
}

// Kernels that read weights so.
int short_kernels(const PlanCheck& check, const CompileOptions& options) {
  const Schedule schedule = compile(module_of(copy_graph(*check.graph)), options).schedule;
  return count_of(schedule, StrategyId::quantized_20) + count_of(schedule, StrategyId::quantized_24);
}

// More than the last cache holds.
Value* large_product(PlanCheck& check, std::int64_t rows = 1) {
  return check.b.matmul(check.input({rows, 1024}), check.b.constant(random_tensor(DType::f32, {1024, 9000}, 3, -1, 1)));
}

TEST_CASE("an element is the nearest multiple of its column's scale in its block") {
  using Case = std::pair<std::int64_t, int>;
  for (const auto& [inner, lower_bits] : {Case{1, 4}, {8, 4}, {300, 4}, {515, 4}, {3, 8}, {515, 8}}) {
    const ShortLayout layout{1, 21, inner, 16, lower_bits};
    CAPTURE(inner);
    CAPTURE(lower_bits);
    const HostTensor w = random_tensor(DType::f32, {inner, 21}, 5, -3, 3);
    const auto packed = pack_short(w, matrix(21), layout);
    REQUIRE(packed);
    const std::vector<double> found = unpacked(*packed, layout);
    double elements = 0, errors = 0, furthest = 0;
    for (std::int64_t n = 0; n < 21; ++n) {
      for (std::int64_t k0 = 0; k0 < inner; k0 += 256) {
        double largest = 0;
        for (std::int64_t k = k0; k < std::min(inner, k0 + 256); ++k) largest = std::max(largest, std::fabs(w.at(k * 21 + n)));
        for (std::int64_t k = k0; k < std::min(inner, k0 + 256); ++k) {
          const double error = found[static_cast<std::size_t>(k * 21 + n)] - w.at(k * 21 + n);
          furthest = std::max(furthest, std::fabs(error) / largest);
          elements += w.at(k * 21 + n) * w.at(k * 21 + n);
          errors += error * error;
        }
      }
    }
    CHECK(furthest <= (lower_bits == 4 ? 0.5001 / 524287 : 0.51 / 8388607));
    CHECK(short_error(w, matrix(21), layout) == doctest::Approx(std::sqrt(errors / elements)));
  }
}

TEST_CASE("columns of zeros stay zeros, what has no such form is not packed") {
  HostTensor w(DType::f32, {9, 3});
  const ShortLayout layout{1, 3, 9, 8};
  const auto zeros = pack_short(w, matrix(3), layout);
  REQUIRE(zeros);
  for (const double x : unpacked(*zeros, layout)) CHECK(x == 0);
  CHECK(short_error(w, matrix(3), layout) == 0);
  for (const double x : {std::numeric_limits<double>::infinity(), std::nan(""), 1e-36}) {
    w.set(7, x);
    CHECK_FALSE(pack_short(w, matrix(3), layout));
  }
}

TEST_CASE("few rows of more weights than caches hold read them in fewer bits, as the contract allows") {
  PlanCheck check;
  check.out("large", large_product(check));
  check.out("small", check.b.matmul(check.input({1, 64}), check.b.constant(random_tensor(DType::f32, {64, 32}, 4, -1, 1))));
  for (const std::string target : {"cpu", "cpu-256", "cpu-amx"}) {
    for (const std::string precision : {"fast", "fp32"}) CHECK(short_kernels(check, options_for(target, precision)) == 2);
    CHECK(short_kernels(check, options_for(target, "strict")) == 0);
    CompileOptions without = options_for(target, "fast");
    without.disabled = {"quantize_weights"};
    CHECK(short_kernels(check, without) == 0);
  }
  CHECK(short_kernels(check, options_for("gpu", "fast")) == 0);
}

TEST_CASE("weights of ten megabytes are read in fewer bits too: other processes use the last cache as well") {
  PlanCheck check;
  check.out("y", check.b.matmul(check.input({1, 1024}), check.b.constant(random_tensor(DType::f32, {1024, 2500}, 3, -1, 1))));
  CHECK(short_kernels(check, options_for("cpu", "fp32")) == 1);
}

TEST_CASE("many rows, unknown rows, weights that caches hold, and weights whose error is too large keep 32 bits") {
  const CompileOptions fast = options_for("cpu-256", "fast");
  {
    PlanCheck many;
    many.out("y", large_product(many, 5));
    CHECK(short_kernels(many, fast) == 0);
  }
  {
    PlanCheck unknown;
    Value* x = unknown.input(DType::f32, {1, 1024}, -1, 1, {"N", ""});
    unknown.out("y", unknown.b.matmul(x, unknown.b.constant(random_tensor(DType::f32, {1024, 9000}, 3, -1, 1))));
    CHECK(short_kernels(unknown, fast) == 0);
  }
  {
    PlanCheck cached;
    cached.out("y", cached.b.matmul(cached.input({1, 1024}), cached.b.constant(random_tensor(DType::f32, {1024, 1000}, 3))));
    CHECK(short_kernels(cached, fast) == 0);
  }
  {
    // Of each block one element is so large that the others have few bits.
    HostTensor w = random_tensor(DType::f32, {1024, 9000}, 3, -1, 1);
    for (std::int64_t k = 0; k < 1024; k += 128) {
      for (std::int64_t n = 0; n < 9000; ++n) w.set(k * 9000 + n, k % 256 == 0 ? 1e3 : 0);
    }
    PlanCheck uneven;
    uneven.out("y", uneven.b.matmul(uneven.input({1, 1024}), uneven.b.constant(w)));
    CHECK(short_error(w, matrix(9000), {1, 9000, 1024, 16}) < 1e-5);
    Schedule schedule = compile(module_of(copy_graph(*uneven.graph)), options_for("cpu-256", "strict")).schedule;
    const auto takes = [&](double error, StrategyId strategy) {
      Schedule shortened = schedule;
      quantize_weights(shortened, {.target = fast.target, .error_budget = 2 * error});
      return std::any_of(shortened.kernels.begin(), shortened.kernels.end(),
                         [&](const Kernel& k) { return k.contraction && k.contraction->asked == strategy; });
    };
    CHECK_FALSE((takes(1e-8, StrategyId::quantized_20) || takes(1e-8, StrategyId::quantized_24)));
    CHECK(takes(1e-6, StrategyId::quantized_24));
    CHECK(takes(1e-5, StrategyId::quantized_20));
  }
}

TEST_CASE("products of weights in 20 and 24 bits: rows, ragged ends, epilogues, fused and unfused") {
  PlanCheck check;
  Builder& b = check.b;
  const auto weights = [&](std::int64_t inner, std::int64_t columns) {
    return b.constant(random_tensor(DType::f32, {inner, columns}, 11, -1, 1));
  };
  check.out("large", large_product(check));
  for (const std::int64_t rows : {1, 2, 3, 4}) {
    const std::string name = std::to_string(rows) + " rows, ";
    check.out(name + "a ragged block and panel", b.matmul(check.input({rows, 603}), weights(603, 147)));
    check.out(name + "an epilogue", b.relu(b.add(b.matmul(check.input({rows, 512}), weights(512, 96)), weights(rows, 96))));
    check.out(name + "weights along their terms", b.matmul(check.input({rows, 72}), weights(40, 72), false, true));
  }
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256"}) {
    CHECK(short_kernels(check, options_for(target, "fast")) == 13);
    for (const bool fuse : {true, false}) CHECK(check.problem(target, fuse, 1e-5, wanted, "fast") == "");
    // One product uses up what the contract leaves for 20 bits.
    CHECK(short_kernels(check, options_for(target, "fp32")) == 13);
    for (const bool fuse : {true, false}) CHECK(check.problem(target, fuse, 2.5e-6, wanted, "fp32") == "");
  }
}

}  // namespace
}  // namespace oclc::test

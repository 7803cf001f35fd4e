// Contractions on tiles of bfloat16: what is computed with the unit's arithmetic in plain C, and without a unit.
#include "compiler/codegen/contraction/amx/contraction_amx.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "compiler/codegen/contraction/amx/pack_digits.h"
#include "compiler/codegen/contraction/amx/pack_parts.h"
#include "compiler/contraction/cpu/amx_tiles.h"
#include "frontends/cpp/typed/device_target.h"
#include "tests/codegen/plan_check.h"
#include "tests/runtime/cached_run.h"
#include "tests/support/choices.h"

using namespace oclc;
using namespace oclc::test;

namespace {

CompileOptions amx_options(const char* precision, bool digits = false) {
  CompileOptions options = default_options();
  options.target = find_target("cpu-amx");
  options.target.flops = 1e8;              // nothing is too small for the unit
  options.target.local_bytes = 256 << 10;  // no CPU has less
  options.target.has.int8_tiles = digits;
  options.conv = "implicit";
  options.precision = precision;
  return options;
}

HostTensor rounded(HostTensor x) {
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, bfloat_to_float(float_to_bfloat(static_cast<float>(x.at(i)))));
  return x;
}

struct AmxCheck {
  PlanCheck plan;
  bool round = false;         // operands are bfloat16 numbers
  bool digits = false;        // integers of three bytes may be taken for parts
  std::int64_t l2_bytes = 0;  // 0: the target's

  Value* input(const Ints& shape, const std::vector<std::string>& names = {}) {
    HostTensor x = random_tensor(DType::f32, shape, static_cast<unsigned>(plan.inputs.size()) + 3, -1, 1);
    return plan.input(round ? rounded(std::move(x)) : std::move(x), names);
  }
  Value* weights(const Ints& shape) {
    HostTensor w = random_tensor(DType::f32, shape, 11, -1, 1);
    return plan.b.constant(round ? rounded(std::move(w)) : std::move(w));
  }
  Value* conv(const Ints& x, const Ints& w, const ConvOptions& options) {
    // After a pooling channels are innermost.
    Value* before = plan.b.max_pool(input(x), {.kernel = {2, 2}, .pads = {0, 0, 1, 1}});
    return plan.b.relu(plan.b.conv(before, weights(w), plan.b.constant(random_tensor(DType::f32, {w[0]}, 5)), options));
  }

  void products_of_every_size() {
    Builder& b = plan.b;
    int n = 0;
    const auto out = [&](Value* y) { plan.out("product " + std::to_string(n++), y); };
    out(b.matmul(input({70, 80}), weights({80, 48})));
    out(b.matmul(input({1, 64}), weights({64, 32})));
    out(b.add(b.matmul(input({33, 100}), weights({100, 37})), input({33, 37})));
    out(b.matmul(input({5, 7}), weights({7, 5})));
    // 64 steps: as many as bytes in a line.
    out(b.matmul(input({49, 2048}), weights({2048, 64})));
    out(b.matmul(input({3, 20, 50}), weights({3, 50, 33})));
    out(b.relu(b.matmul(b.transpose(input({40, 65}), {1, 0}), weights({40, 130}))));
    out(b.matmul(input({9, 96}, {"T", ""}), weights({96, 64})));
    if (!round) out(b.matmul(b.relu(b.mul(input({40, 72}), 2.0)), weights({72, 64})));
  }

  // With the unit's arithmetic, with that of other processors and with what there is; so many kernels are of the strategy.
  void check(const char* precision, double tolerance, StrategyId strategy, int wanted_kernels) const {
    const auto wanted = evaluate(*plan.graph, plan.inputs, plan.symbols);
    for (const char* use : {"emulate", "0", "1"}) {
      CAPTURE(use);
      const Setting setting("OCLC_AMX", use);
      CompileOptions options = amx_options(precision, digits);
      if (l2_bytes > 0) options.target.l2_bytes = l2_bytes;
      PlanRunner runner(module_of(copy_graph(*plan.graph)), options);
      CHECK(count_of(runner.compiled().schedule, strategy) >= wanted_kernels);
      CHECK(oclc::difference(runner.run(plan.inputs, plan.symbols), wanted, tolerance) == "");
    }
  }
};

}  // namespace

TEST_CASE("products of every size, on tiles") {
  for (const auto& [precision, tolerance, round] :
       {std::tuple{"fp32", 1e-6, false}, {"fast", 2e-5, false}, {"bf16", 1e-6, true}}) {
    CAPTURE(precision);
    AmxCheck check;
    check.round = round;
    check.products_of_every_size();
    check.check(precision, tolerance, StrategyId::amx_rows, 8);
  }
}

TEST_CASE("products of two values of run time, on tiles") {
  for (const auto& [precision, tolerance, round] :
       {std::tuple{"fp32", 1e-6, false}, {"fast", 2e-5, false}, {"bf16", 1e-6, true}}) {
    CAPTURE(precision);
    AmxCheck check;
    check.round = round;
    Builder& b = check.plan.b;
    int n = 0;
    const auto out = [&](Value* y) { check.plan.out("product " + std::to_string(n++), y); };
    out(b.matmul(check.input({2, 3, 50, 37}), check.input({2, 3, 37, 48})));
    out(b.matmul(check.input({3, 70, 64}), b.transpose(check.input({3, 53, 64}), {0, 2, 1})));
    out(b.mul(b.matmul(check.input({2, 40, 48}), b.transpose(check.input({2, 40, 48}), {0, 2, 1})), 0.125));
    out(b.add(b.matmul(check.input({33, 100}), check.input({100, 80})), check.input({33, 80})));
    // Heads that lie side by side in a row.
    out(b.matmul(b.transpose(check.input({30, 4, 32}), {1, 0, 2}), b.transpose(check.input({30, 4, 32}), {1, 2, 0})));
    out(b.matmul(check.input({5, 40, 64}, {"N", "T", ""}), check.input({5, 64, 32}, {"N", "", ""})));
    // Rows that are neighbours, of odd numbers too, and sums of several chunks, after what is computed as it is copied.
    out(b.matmul(b.transpose(check.input({45, 70}), {1, 0}), check.input({45, 37})));
    out(b.relu(b.matmul(b.transpose(b.relu(check.input({600, 64})), {1, 0}), check.input({600, 90}))));
    out(b.matmul(check.input({3, 40, 600}), b.transpose(check.input({3, 37, 600}), {0, 2, 1})));
    check.check(precision, tolerance, StrategyId::amx_chunks, 9);
  }
}

TEST_CASE("convolutions with weights of run time, on tiles") {
  AmxCheck check;
  Builder& b = check.plan.b;
  const auto out = [&](const char* name, Value* y) { check.plan.out(name, y); };
  Value* x = b.max_pool(check.input({2, 32, 9, 9}), {.kernel = {2, 2}, .pads = {0, 0, 1, 1}});
  out("weights of run time", b.conv(x, check.input({40, 32, 3, 3}), nullptr, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
  out("one tap", b.conv(x, check.input({48, 32, 1, 1}), nullptr, {}));
  check.check("fp32", 1e-6, StrategyId::amx_chunks, 2);
}

TEST_CASE("what training multiplies takes tiles, whose sums are as careful") {
  Target target = find_target("cpu-amx");
  target.precision.bf16_products = 6;
  target.precision.blocked_summation = true;
  REQUIRE(choose_amx_pair({.groups = 1, .rows = 6272, .columns = 512, .taps = 1, .inner = 128}, target));
  const auto deep = choose_amx_pair({.groups = 1, .rows = 512, .columns = 512, .taps = 1, .inner = 50000}, target);
  REQUIRE(deep);
  CHECK(deep->chunk <= 16);  // longer chains of the unit's additions would round more
  // Sums of any length are cut, and their blocks lie in local memory.
  AmxPairProduct any{.groups = 1, .rows = 768, .columns = 768, .taps = 1, .inner = 64};
  any.any_terms = true;
  const auto cut = choose_amx_pair(any, target);
  REQUIRE(cut);
  CHECK(((cut->row_blocks * cut->panels) * 1024 + (cut->row_blocks + cut->panels) * cut->chunk * 1536) * 4 <=
        target.local_bytes);
  const AmxPairProduct small{.groups = 1, .rows = 32, .columns = 32, .taps = 1, .inner = 32};
  const auto slow = choose_amx_pair(small, target);
  CHECK((!slow || !tiles_gain(slow->seconds, fma_pair_seconds(small, target), target)));
}

TEST_CASE("products of run time of which no vectors can be copied take no tiles") {
  AmxCheck check;
  Builder& b = check.plan.b;
  check.plan.out("few columns and terms", b.matmul(check.input({3, 40, 12}), check.input({3, 12, 14})));
  PlanRunner runner(module_of(copy_graph(*check.plan.graph)), amx_options("bf16"));
  const std::vector<Choice> choices = choices_of(runner.compiled().schedule);
  REQUIRE(choices.size() == 1);
  CHECK(row_of(choices[0].strategy).needs != TargetNeeds::amx);
}

TEST_CASE("a sum that does not fit local memory is cut into chunks") {
  AmxCheck check;
  check.plan.out("long sum", check.plan.b.matmul(check.input({40, 9000}), check.weights({9000, 40})));
  check.check("fp32", 2e-6, StrategyId::amx_rows, 1);
}

TEST_CASE("results of wide rows are stored row by row") {
  for (const auto& [precision, tolerance, round] :
       {std::tuple{"fp32", 1e-6, false}, {"fast", 2e-5, false}, {"bf16", 1e-6, true}}) {
    CAPTURE(precision);
    AmxCheck check;
    check.round = round;
    Builder& b = check.plan.b;
    check.plan.out("wide", b.add(b.matmul(check.input({400, 60}), check.weights({60, 300})), check.input({400, 300})));
    check.plan.out("groups", b.relu(b.matmul(check.input({2, 150, 32}), check.weights({2, 32, 288}))));
    check.check(precision, tolerance, StrategyId::amx_rows, 2);
    PlanRunner runner(module_of(copy_graph(*check.plan.graph)), amx_options(precision));
    const auto tiles = tiles_of<AmxTiles>(runner.compiled().schedule);
    CHECK(std::any_of(tiles.begin(), tiles.end(), [](const AmxTiles& t) { return t.sweep; }));
  }
  Target target = find_target("cpu-amx");
  target.precision.bf16_products = 3;
  CHECK(choose_amx_tiles({1, 784, 512, 1, 128}, target)->sweep);
  CHECK_FALSE(choose_amx_tiles({1, 784, 128, 1, 512}, target)->sweep);   // a narrow row
  CHECK_FALSE(choose_amx_tiles({1, 128, 3072, 1, 768}, target)->sweep);  // weights come from memory
}

TEST_CASE("convolutions of a window") {
  for (const auto& [precision, tolerance, round] :
       {std::tuple{"fp32", 1e-6, false}, {"fast", 2e-5, false}, {"bf16", 1e-6, true}}) {
    CAPTURE(precision);
    AmxCheck check;
    check.round = round;
    int n = 0;
    const auto out = [&](Value* y) { check.plan.out("convolution " + std::to_string(n++), y); };
    out(check.conv({2, 48, 13, 13}, {40, 48, 3, 3}, {.pads = {1, 1, 1, 1}}));
    out(check.conv({1, 32, 20, 17}, {64, 32, 3, 3}, {.pads = {1, 0, 1, 2}}));
    out(check.conv({1, 24, 15, 15}, {32, 24, 3, 3}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
    out(check.conv({1, 17, 14, 15}, {33, 17, 5, 4}, {.strides = {2, 1}, .pads = {2, 1, 2, 2}}));
    out(check.conv({1, 64, 12, 12}, {32, 64, 3, 3}, {.dilations = {2, 2}, .pads = {2, 2, 2, 2}}));
    out(check.conv({2, 40, 9, 9}, {70, 40, 1, 7}, {.pads = {0, 3, 0, 3}}));
    out(check.conv({1, 32, 3, 3}, {32, 32, 3, 3}, {}));
    check.check(precision, tolerance, StrategyId::amx_window, 5);
  }
}

TEST_CASE("blocks of positions take a panel in pieces where the second-level cache does not hold two") {
  for (const auto& [precision, tolerance, round] :
       {std::tuple{"fp32", 2e-6, false}, {"fast", 2e-5, false}, {"bf16", 2e-6, true}}) {
    CAPTURE(precision);
    AmxCheck check;
    check.round = round;
    check.l2_bytes = 256 << 10;
    check.plan.out("three taps at once", check.conv({1, 128, 9, 9}, {70, 128, 3, 3}, {.pads = {1, 1, 1, 1}}));
    check.plan.out("a tap at once", check.conv({2, 256, 5, 5}, {40, 256, 3, 3}, {.pads = {1, 1, 1, 1}}));
    check.plan.out("rows", check.plan.b.matmul(check.input({49, 700}), check.weights({700, 64})));
    check.check(precision, tolerance, StrategyId::amx_window, 1);
  }
  Target target = find_target("cpu-amx");
  target.precision.bf16_products = 6;
  const auto taps_at_once = [&](std::int64_t size, std::int64_t channels) {
    return choose_amx_window({1, size, size, channels, channels, 9, 1, size + 1, 2 * (size + 1) + 2}, target)->taps_at_once;
  };
  CHECK(taps_at_once(28, 128) == 9);
  CHECK(taps_at_once(7, 512) == 3);
  target.precision.bf16_products = 1;
  CHECK(taps_at_once(7, 512) == 9);
}

TEST_CASE("convolutions of few channels multiply patches") {
  for (const auto& [precision, tolerance, round] :
       {std::tuple{"fp32", 1e-6, false}, {"fast", 2e-5, false}, {"bf16", 1e-6, true}}) {
    CAPTURE(precision);
    AmxCheck check;
    check.round = round;
    Builder& b = check.plan.b;
    int n = 0;
    const auto planes = [&](const Ints& x, const Ints& w, const ConvOptions& options) {
      Value* y = b.conv(check.input(x, x[0] == 3 ? std::vector<std::string>{"N", "", "", ""} : std::vector<std::string>{}),
                        check.weights(w), b.constant(random_tensor(DType::f32, {w[0]}, 5)), options);
      check.plan.out("convolution " + std::to_string(n++), b.relu(y));
    };
    planes({1, 3, 30, 30}, {64, 3, 7, 7}, {.strides = {2, 2}, .pads = {3, 3, 3, 3}});
    planes({2, 3, 19, 45}, {40, 3, 3, 3}, {.pads = {1, 1, 1, 1}});
    planes({1, 3, 47, 47}, {33, 3, 11, 11}, {.strides = {4, 4}, .pads = {2, 2, 2, 2}});
    planes({1, 3, 48, 48}, {70, 3, 16, 16}, {.strides = {16, 16}});
    planes({3, 1, 28, 28}, {32, 1, 5, 5}, {.pads = {2, 0, 1, 3}});
    planes({1, 4, 20, 33}, {48, 4, 3, 5}, {.strides = {1, 2}, .dilations = {2, 1}, .pads = {2, 2, 2, 2}});
    planes({1, 2, 20, 40}, {32, 2, 2, 18}, {.pads = {0, 9, 0, 8}});
    planes({1, 15, 12, 12}, {32, 15, 3, 3}, {.pads = {1, 1, 1, 1}});
    check.check(precision, tolerance, StrategyId::amx_patches, 8);
  }
}

TEST_CASE("patches of channels that lie innermost, and of activations in 16 bits") {
  AmxCheck check;
  check.plan.out("y", check.conv({1, 6, 15, 15}, {40, 6, 3, 3}, {.pads = {1, 1, 1, 1}}));
  check.check("fp32", 1e-6, StrategyId::amx_patches, 1);
  check.check("bf16", 1e-2, StrategyId::amx_patches, 1);
}

TEST_CASE("a patch ends in zeros: what lies behind it does not count") {
  AmxCheck check;
  Builder& b = check.plan.b;
  HostTensor x = random_tensor(DType::f32, {1, 3, 9, 40}, 3, -1, 1);
  x.set(2 * 9 * 40 + 8 * 40 + 39, std::numeric_limits<double>::infinity());
  check.plan.out("y", b.conv(check.plan.input(std::move(x)), check.weights({32, 3, 3, 3}), nullptr, {.strides = {2, 1}}));
  const Setting setting("OCLC_AMX", "emulate");
  PlanRunner runner(module_of(copy_graph(*check.plan.graph)), amx_options("bf16"));
  REQUIRE(count_of(runner.compiled().schedule, StrategyId::amx_patches) == 1);
  const HostTensor y = runner.run(check.plan.inputs).at(0);
  int others = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) others += !std::isfinite(y.at(i));
  CHECK(others == 32);
}

TEST_CASE("convolutions without a window gather rows for each tap") {
  AmxCheck check;
  int n = 0;
  const auto out = [&](Value* y) { check.plan.out("convolution " + std::to_string(n++), y); };
  out(check.conv({1, 8, 13, 13}, {40, 8, 3, 3}, {.dilations = {2, 2}, .pads = {2, 2, 2, 2}}));
  out(check.conv({1, 64, 13, 13}, {64, 32, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 2}));
  out(check.conv({1, 64, 14, 14}, {64, 64, 1, 1}, {.strides = {2, 2}}));
  out(check.conv({1, 32, 14, 14}, {48, 32, 2, 2}, {.strides = {3, 3}}));
  check.check("fp32", 1e-6, StrategyId::amx_rows, 4);
}

TEST_CASE("products of one part take activations as they lie in memory") {
  AmxCheck check;
  Builder& b = check.plan.b;
  const auto more = [&](Value* x, const Ints& w, const ConvOptions& options) {
    return b.relu(b.conv(x, check.weights(w), b.constant(random_tensor(DType::f32, {w[0]}, 5)), options));
  };
  Value* x = check.conv({2, 32, 13, 13}, {48, 32, 3, 3}, {.pads = {1, 1, 1, 1}});
  x = more(x, {40, 48, 3, 3}, {.pads = {1, 1, 1, 1}});
  x = more(x, {64, 40, 3, 3}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}});
  x = b.add(more(x, {64, 64, 1, 1}, {}), x);
  x = more(x, {34, 64, 1, 1}, {.strides = {2, 2}});
  check.plan.out("y", more(x, {16, 34, 1, 1}, {}));
  check.check("bf16", 1e-2, StrategyId::amx_window, 1);
  PlanRunner runner(module_of(copy_graph(*check.plan.graph)), amx_options("bf16"));
  CHECK(runner.source().find("const __global ushort* src = ") != std::string::npos);
  CHECK(runner.source().find("ushort16 half_line[2]") != std::string::npos);
}

TEST_CASE("NaN stays NaN and infinities become NaN") {
  for (const auto& [precision, digits] :
       {std::pair{"fp32", false}, {"fast", false}, {"bf16", false}, {"fp32", true}, {"fast", true}}) {
    CAPTURE(precision);
    CAPTURE(digits);
    for (const std::uint32_t bits : {0x7fc00000u, 0x7fffffffu, 0xffffffffu, 0x7f800001u, 0x7f800000u, 0xff800000u}) {
      PlanCheck plan;
      HostTensor x(DType::f32, {2, 64}), w(DType::f32, {64, 32});
      for (std::int64_t i = 0; i < w.elements(); ++i) w.set(i, 1);
      std::memcpy(x.mutable_data() + 4 * 3, &bits, 4);
      Value* y = plan.b.matmul(plan.input(std::move(x)), plan.b.constant(std::move(w)));
      plan.out("y", y);
      const Setting setting("OCLC_AMX", "emulate");
      PlanRunner runner(module_of(copy_graph(*plan.graph)), amx_options(precision, digits));
      const HostTensor found = runner.run(plan.inputs).at(0);
      const bool infinite = (bits & 0x7fffffff) == 0x7f800000;
      if (!infinite || std::string(precision) != "bf16") CHECK(std::isnan(found.at(0)));
      if (infinite && std::string(precision) == "bf16") CHECK(std::isinf(found.at(0)));
      CHECK(found.at(32) == 0);
    }
  }
}

TEST_CASE("rows as integers of three bytes, on tiles") {
  AmxCheck check;
  check.digits = true;
  check.products_of_every_size();
  // The digits of all terms do not fit: chunks of them.
  check.plan.out("long", check.plan.b.matmul(check.input({100, 2500}), check.weights({2500, 64})));
  check.check("fp32", 2e-6, StrategyId::amx_limbs, 8);
  PlanRunner runner(module_of(copy_graph(*check.plan.graph)), amx_options("fp32", true));
  // 2500 terms are 40 steps of 64.
  for (const AmxTiles& tiles : tiles_of<AmxTiles>(runner.compiled().schedule)) CHECK(tiles.chunk < 40);
}

TEST_CASE("windows as integers of three bytes, on tiles") {
  for (const std::int64_t l2_bytes : {0, 256 << 10}) {
    CAPTURE(l2_bytes);
    AmxCheck check;
    check.digits = true;
    check.l2_bytes = l2_bytes;
    int n = 0;
    const auto out = [&](Value* y) { check.plan.out("convolution " + std::to_string(n++), y); };
    out(check.conv({2, 64, 13, 13}, {40, 64, 3, 3}, {.pads = {1, 1, 1, 1}}));
    out(check.conv({1, 100, 20, 17}, {64, 100, 3, 3}, {.pads = {1, 0, 1, 2}}));
    out(check.conv({1, 64, 15, 15}, {32, 64, 3, 3}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
    out(check.conv({1, 49, 14, 15}, {33, 49, 5, 4}, {.strides = {2, 1}, .pads = {2, 1, 2, 2}}));
    out(check.conv({1, 64, 12, 12}, {32, 64, 3, 3}, {.dilations = {2, 2}, .pads = {2, 2, 2, 2}}));
    out(check.conv({1, 256, 5, 5}, {40, 256, 3, 3}, {.pads = {1, 1, 1, 1}}));
    check.check("fp32", 2e-6, StrategyId::amx_limb_window, 4);
  }
}

TEST_CASE("a window that is not finite spoils the results that meet it and no others") {
  AmxCheck check;
  Builder& b = check.plan.b;
  HostTensor x = random_tensor(DType::f32, {1, 64, 12, 12}, 3, -1, 1);
  x.set(5 * 144 + 4 * 12 + 7, std::numeric_limits<double>::quiet_NaN());
  Value* before = b.max_pool(check.plan.input(std::move(x)), {.kernel = {1, 1}});
  check.plan.out("y", b.conv(before, check.weights({32, 64, 3, 3}), nullptr, {.pads = {1, 1, 1, 1}}));
  for (const char* use : {"emulate", "0"}) {
    CAPTURE(use);
    const Setting setting("OCLC_AMX", use);
    PlanRunner runner(module_of(copy_graph(*check.plan.graph)), amx_options("fp32", true));
    REQUIRE(count_of(runner.compiled().schedule, StrategyId::amx_limb_window) == 1);
    const HostTensor y = runner.run(check.plan.inputs).at(0);
    int spoiled = 0;
    for (std::int64_t i = 0; i < y.elements(); ++i) spoiled += !std::isfinite(y.at(i));
    CHECK(spoiled == 32 * 9);
  }
}

TEST_CASE("integers of few bits are multiplied without an error, whatever their unit") {
  AmxCheck check;
  const auto whole = [](const Ints& shape, unsigned seed, double unit) {
    HostTensor x = random_tensor(DType::f32, shape, seed, -500, 500);
    for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, std::nearbyint(x.at(i)) * unit);
    return x;
  };
  Value* x = check.plan.input(whole({40, 64}, 3, 0x1p-40));
  check.plan.out("y", check.plan.b.matmul(x, check.plan.b.constant(whole({64, 32}, 5, 0x1p30))));
  const auto wanted = evaluate(*check.plan.graph, check.plan.inputs);
  for (const char* use : {"emulate", "1"}) {
    const Setting setting("OCLC_AMX", use);
    PlanRunner runner(module_of(copy_graph(*check.plan.graph)), amx_options("fp32", true));
    REQUIRE(count_of(runner.compiled().schedule, StrategyId::amx_limbs) == 1);
    CHECK(oclc::difference(runner.run(check.plan.inputs), wanted, 0.0) == "");
  }
}

TEST_CASE("what integers of three bytes are no good copy of is multiplied as parts") {
  HostTensor w = random_tensor(DType::f32, {256, 32}, 9, -1, 1);
  const PackedOperand where{.inner_stride = 32, .column_stride = 1, .tap_offsets = {0}};
  const auto packed = pack_digits(w, where, 1, 32, 256);
  REQUIRE(packed);
  for (const auto& [k, n] : {std::pair{0, 0}, {17, 20}, {63, 31}, {64, 3}, {255, 16}}) {
    double sum = 0;
    for (std::int64_t digit = 0; digit < 3; ++digit)
      sum = sum * 256 + packed->digits.at((k / 64 * 3 + digit) * 2048 + n / 16 * 1024 + k % 16 * 64 + n % 16 * 4 + k % 64 / 16);
    CHECK(std::fabs(sum * packed->units.at(n) / 65536 - w.at(k * 32 + n)) <= packed->units.at(n) / 65536 / 2);
  }
  for (std::int64_t n = 0; n < 32; ++n) w.set(n, 100);  // one element of each column is most of it
  CHECK(!pack_digits(w, where, 1, 32, 256));
  w.set(5, std::numeric_limits<double>::infinity());
  CHECK(!pack_digits(w, where, 1, 32, 256));
  Target target = find_target("cpu-amx");
  target.precision.bf16_products = 6;
  const AmxProduct product{1, 512, 512, 1, 512};
  CHECK(choose_amx_digits(product, target));
  CHECK(!choose_amx_digits({1, 64, 64, 1, 50000}, target));  // sums of more than 32 bits
  target.precision.blocked_summation = true;
  CHECK(!choose_amx_digits(product, target));
  target.precision.blocked_summation = false;
  target.precision.bf16_products = 1;
  CHECK(!choose_amx_digits(product, target));
}

TEST_CASE("integers of 8 bits times a scale are the first digits of weights, exactly") {
  HostTensor w(DType::f32, {64, 32});
  for (std::int64_t i = 0; i < w.elements(); ++i)
    w.set(i, static_cast<double>(static_cast<float>((i * 37 + i / 32) % 256 - 128) * (i % 32 == 31 ? 0.37F : 0.013F)));
  const PackedOperand where{.inner_stride = 32, .column_stride = 1, .tap_offsets = {0}};
  const auto packed = pack_digits(w, where, 1, 32, 64);
  REQUIRE(packed);
  for (std::int64_t i = 2048; i < packed->digits.elements(); ++i) REQUIRE(packed->digits.int_at(i) == 0);
  for (std::int64_t k = 0; k < 64; ++k) {
    for (std::int64_t n = 0; n < 32; ++n) {
      const double digit = packed->digits.at(n / 16 * 1024 + k % 16 * 64 + n % 16 * 4 + k / 16);
      REQUIRE(std::fabs(digit * packed->units.at(n) - w.at(k * 32 + n)) <= 0x1p-23 * std::fabs(w.at(k * 32 + n)));
    }
  }
  w.set(0, 0.0131);  // one element that is none
  const auto other = pack_digits(w, where, 1, 32, 64);
  REQUIRE(other);
  CHECK(other->units.at(0) == std::exp2(std::round(std::log2(other->units.at(0)))));
  CHECK(other->units.at(1) == packed->units.at(1));
}

TEST_CASE("weights that have no parts are multiplied without the unit") {
  HostTensor w(DType::f32, {2});
  w.set(0, 1);
  PackedOperand where{.column_stride = 1, .tap_offsets = {0}};
  CHECK(pack_parts(w, where, 1, 2, 1, 3));
  w.set(1, std::numeric_limits<double>::infinity());
  CHECK(!pack_parts(w, where, 1, 2, 1, 3));
  w.set(1, 3.4e38);
  CHECK(!pack_parts(w, where, 1, 2, 1, 1));
}

TEST_CASE("one part has its terms in order") {
  const HostTensor w = rounded(random_tensor(DType::f32, {40, 36}, 9, -3, 3));
  const auto packed = pack_parts(w, {.inner_stride = 36, .column_stride = 1, .tap_offsets = {0}}, 1, 36, 40, 1);
  REQUIRE(packed);
  REQUIRE(packed->elements() == 2 * 2 * 1024);
  for (const auto& [k, n] : {std::pair{0, 0}, {5, 3}, {17, 20}, {31, 31}, {32, 32}, {39, 35}}) {
    const std::int64_t step = n / 32 * 2 + k / 32;
    CHECK(packed->at(step * 1024 + n % 32 / 16 * 512 + k % 32 / 2 * 32 + n % 16 * 2 + k % 2) == w.at(k * 36 + n));
  }
}

TEST_CASE("parts of a weight add up to it") {
  const HostTensor w = random_tensor(DType::f32, {40, 36}, 9, -3, 3);
  const auto packed = pack_parts(w, {.inner_stride = 36, .column_stride = 1, .tap_offsets = {0}}, 1, 36, 40, 3);
  REQUIRE(packed);
  REQUIRE(packed->elements() == 2 * 2 * 3 * 1024);
  const auto at = [&](std::int64_t k, std::int64_t n) {
    double sum = 0;
    for (std::int64_t part = 0; part < 3; ++part)
      sum += packed->at(((n / 32 * 2 + k / 32) * 3 + part) * 1024 + n % 32 / 16 * 512 + k % 16 * 32 + n % 16 * 2 + k % 32 / 16);
    return sum;
  };
  for (const auto& [k, n] : {std::pair{0, 0}, {5, 3}, {17, 20}, {31, 31}, {32, 32}, {39, 35}})
    CHECK(at(k, n) == w.at(k * 36 + n));
  CHECK(at(40, 0) == 0);
  CHECK(at(0, 36) == 0);
}

TEST_CASE("the unit is taken where a target has it, the contract allows it and a product is worth it") {
  Target target = find_target("cpu-amx");
  const AmxProduct large{1, 512, 512, 1, 512}, row{1, 1, 1000, 1, 2048};
  target.precision = precision_under(Contract::strict);
  CHECK(!choose_amx_tiles(large, target));
  target.precision.bf16_products = 6;
  REQUIRE(choose_amx_tiles(large, target));
  CHECK(choose_amx_tiles(large, target)->seconds < fma_seconds(large, target));
  CHECK(choose_amx_tiles(row, target)->seconds > fma_seconds(row, target));
  // Six products have to look faster by a quarter.
  for (const int products : {6, 3}) {
    target.precision.bf16_products = products;
    CHECK(tiles_gain(1.0, 1.3, target));
    CHECK(tiles_gain(1.0, 1.2, target) == (products == 3));
    CHECK_FALSE(tiles_gain(1.0, 1.0, target));
  }
  target.precision.bf16_products = 6;
  const AmxProduct deep{1, 512, 512, 9, 4096};
  const AmxTiles tiles = *choose_amx_tiles(deep, target);
  CHECK(tiles.chunk < deep.steps());
  CHECK(amx_local_floats(tiles, deep, 6) * 4 <= target.local_bytes);
  Target plain = find_target("cpu");
  plain.precision.bf16_products = 6;
  CHECK(!choose_amx_tiles(large, plain));
}

TEST_CASE("a device with tiles has their target") {
  DeviceFacts facts;
  facts.vector_width = 16;
  CHECK(target_for(facts).name == "cpu");
  facts.amx = true;
  CHECK(target_for(facts).name == "cpu-amx");
  facts.compute_units = 4;
  CHECK(target_for(facts).flops == 2 * find_target("cpu-amx").flops);
  facts.vector_width = 8;
  CHECK(target_for(facts).name == "cpu-256");
}

TEST_CASE("a device's own words choose between the rows of 512-bit vectors") {
  struct Case {
    const char *name, *features, *quirks, *target;
  };
  for (const Case& c : {Case{"pthread-Intel Xeon", "avx512f", "own_cache", "cpu"},
                        Case{"pthread-Intel Xeon", "avx512f amx_tile amx_bf16", "own_cache", "cpu-amx"},
                        Case{"Intel Xeon", "avx512f amx_tile amx_bf16", "no_tile_assembly", "cpu"},
                        Case{"pthread-AMD EPYC", "avx512f", "own_cache", "cpu-zen"}}) {
    oclc_device_info device = OCLC_INIT(oclc_device_info);
    device.device_class = OCLC_DEVICE_CPU;
    device.vector_width_float = 16;
    std::strcpy(device.name, c.name);
    std::strcpy(device.cpu_features, c.features);
    std::strcpy(device.quirks, c.quirks);
    CHECK(target_of(device).name == c.target);
  }
}

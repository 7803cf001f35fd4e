// Products that are over sooner than a launch: which they are, what they compute, and that launches of several have them as
// parts. The text for matrix units runs on such devices alone; the other one has the same groups.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/loops/group_reduction.h"
#include "compiler/codegen/loops/loop_nest.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/schedule/small_gemm.h"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

CompileOptions short_options(std::vector<std::string> disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target("h200");
  options.disabled = std::move(disabled);
  return options;
}

Compiled short_compiled(const PlanCheck& check, std::vector<std::string> disabled = {}) {
  return compile(module_of(copy_graph(*check.graph)), short_options(std::move(disabled)));
}

struct ShortShape {
  std::int64_t m, n, k;
};

// One product of rows with weights that lie along the sum, or along the columns.
PlanCheck one_product(const ShortShape& s, bool along_sum = true, bool symbolic = false) {
  PlanCheck check;
  Value* x = check.input(DType::f32, {s.m, s.k}, -1, 1, {symbolic ? "S" : "", ""});
  if (symbolic) check.symbols = {{"S", s.m}};
  Value* w = check.b.constant(random_tensor(DType::f32, along_sum ? Ints{s.n, s.k} : Ints{s.k, s.n}, 3));
  check.out("y", check.b.relu(check.b.matmul(x, w, false, along_sum)));
  return check;
}

std::optional<ShortTiles> tiles_of(const PlanCheck& check) {
  const Compiled c = short_compiled(check);
  return small_gemm_tiles(c.schedule.kernels.at(0), find_target("h200"));
}

TEST_CASE("short products of a Hopper have a template of their own, with ragged rows, columns and sums") {
  for (const ShortShape& s :
       {ShortShape{49, 160, 960}, {49, 100, 20}, {196, 64, 384}, {197, 96, 36}, {3136, 24, 64}, {2, 18, 1028}}) {
    CAPTURE(s.m);
    CAPTURE(s.k);
    const PlanCheck check = one_product(s);
    const Compiled c = short_compiled(check);
    CHECK(c.plan.launches == 1);
    const GeneratedKernel g = generate(c.schedule.kernels.at(0), c.schedule.buffers, find_target("h200"));
    CHECK(g.schedule.find("contraction_small_gpu") != std::string::npos);
    CHECK(g.source.find("#if OCLC_NV_SM >= 80") != std::string::npos);
    CHECK(g.source.find("//@hole") == std::string::npos);
    CHECK(g.packed.empty());
    CHECK(std::stoll(g.local_floats) * 4 <= find_target("h200").local_bytes);
    CHECK(check.problem("h200", true, 3e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
  }
}

TEST_CASE("sub-groups share long sums and divide the rows of others") {
  const auto deep = tiles_of(one_product({49, 160, 960})), tall = tiles_of(one_product({12544, 96, 16}));
  REQUIRE(deep);
  REQUIRE(tall);
  CHECK(deep->sharers == 8);
  CHECK(deep->rows == 16);
  CHECK(tall->sharers == 1);
  CHECK(tall->rows >= 64);
  for (const auto& t : {*deep, *tall}) CHECK(t.rows / 16 * (t.columns / t.warp_columns) * t.sharers == 8);
}

TEST_CASE("a part of a launch asks for twelve vectors of a long sum at a time") {
  const Compiled c = short_compiled(one_product({49, 192, 1152}));
  const auto part = small_gemm_tiles(c.schedule.kernels.at(0), find_target("h200"), true);
  REQUIRE(part);
  CHECK(part->ahead * (2 + part->warp_columns / 8) == 12);
}

TEST_CASE("large products, rows of unknown number and weights that lie along the columns have other templates") {
  CHECK(!tiles_of(one_product({4096, 512, 512})));
  CHECK(!tiles_of(one_product({49, 160, 960}, true, true)));
  CHECK(!tiles_of(one_product({49, 160, 960}, false)));
  CHECK(!tiles_of(one_product({49, 160, 961})));
}

TEST_CASE("blocks of products and depthwise convolutions are one launch on a Hopper, with the same bits run after run") {
  PlanCheck check;
  Builder& b = check.b;
  constexpr std::int64_t kNarrow = 16, kWide = 48, kSide = 9;
  const auto weights = [&](Ints shape, unsigned seed) { return b.constant(random_tensor(DType::f32, shape, seed, -0.3, 0.3)); };
  Value* x = check.input({1, kNarrow, kSide, kSide});
  for (unsigned i = 0; i < 4; ++i) {
    ConvOptions pointwise, depthwise;
    depthwise.group = kWide;
    depthwise.pads = {1, 1, 1, 1};
    Value* wide = b.relu(b.conv(x, weights({kWide, kNarrow, 1, 1}, 5 * i), weights({kWide}, 5 * i + 1), pointwise));
    wide = b.relu(b.conv(wide, weights({kWide, 1, 3, 3}, 5 * i + 2), nullptr, depthwise));
    x = b.add(x, b.conv(wide, weights({kNarrow, kWide, 1, 1}, 5 * i + 3), weights({kNarrow}, 5 * i + 4), pointwise));
  }
  check.out("y", x);
  const Compiled together = short_compiled(check), apart = short_compiled(check, {"megakernel"});
  CHECK(together.plan.launches <= 2);
  CHECK(apart.plan.launches >= 12);
  const std::string& text = together.plan.files.back().source;
  CHECK(text.find("rank = item == 0 ? oclc_group_rank(") != std::string::npos);
  CHECK(text.find("&& rank == 0 && turns[") != std::string::npos);
  const auto run = [&](std::vector<std::string> disabled, int times) {
    PlanRunner runner(module_of(copy_graph(*check.graph)), short_options(std::move(disabled)));
    std::vector<HostTensor> out;
    for (int i = 0; i < times; ++i) out = runner.run(check.inputs, check.symbols);
    return out;
  };
  const auto launched = run({"megakernel"}, 1);
  CHECK(oclc::difference(launched, evaluate(*check.graph, check.inputs, check.symbols), 5e-6) == "");
  const auto once = run({}, 1);
  CHECK(oclc::difference(once, launched, 1e-6) == "");
  CHECK(oclc::difference(run({}, 3), once, 0) == "");
}

// A block's values times gates that a mean and two products of one row compute of them.
Value* gated(Builder& b, Value* x, std::int64_t channels, std::int64_t squeezed, unsigned seed) {
  const auto weights = [&](Ints shape, unsigned s) { return b.constant(random_tensor(DType::f32, shape, s, -0.3, 0.3)); };
  Value* few = b.conv(b.reduce("reduce_mean", x, {2, 3}, true), weights({squeezed, channels, 1, 1}, seed),
                      weights({squeezed}, seed + 1), {});
  Value* gates = b.conv(b.relu(few), weights({channels, squeezed, 1, 1}, seed + 2), weights({channels}, seed + 3), {});
  return b.mul(x, b.call("sigmoid", {gates}));
}

TEST_CASE("squeeze-and-excite blocks between short products are parts of their launch, and chains without one") {
  PlanCheck check;
  Builder& b = check.b;
  constexpr std::int64_t kNarrow = 16, kWide = 96, kSqueezed = 20, kSide = 9;
  const auto weights = [&](Ints shape, unsigned seed) { return b.constant(random_tensor(DType::f32, shape, seed, -0.3, 0.3)); };
  Value* x = check.input({1, kNarrow, kSide, kSide});
  for (unsigned i = 0; i < 3; ++i) {
    ConvOptions depthwise;
    depthwise.group = kWide;
    depthwise.pads = {2, 2, 2, 2};
    Value* wide = b.relu(b.conv(x, weights({kWide, kNarrow, 1, 1}, 9 * i), weights({kWide}, 9 * i + 1), {}));
    wide = b.relu(b.conv(wide, weights({kWide, 1, 5, 5}, 9 * i + 2), nullptr, depthwise));
    wide = gated(b, wide, kWide, kSqueezed, 9 * i + 3);
    x = b.add(x, b.conv(wide, weights({kNarrow, kWide, 1, 1}, 9 * i + 7), weights({kNarrow}, 9 * i + 8), {}));
  }
  check.out("y", x);
  const auto chains = [&](std::vector<std::string> disabled) {
    const Compiled c = short_compiled(check, std::move(disabled));
    const std::vector<Step>& steps = c.schedule.entries.at(0).steps;
    return std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.is<WorkGroupStep>(); });
  };
  CHECK(chains({}) == 0);
  CHECK(chains({"megakernel"}) == 3);
  CHECK(short_compiled(check).plan.launches <= 2);
  const auto run = [&](std::vector<std::string> disabled, int times) {
    PlanRunner runner(module_of(copy_graph(*check.graph)), short_options(std::move(disabled)));
    std::vector<HostTensor> out;
    for (int i = 0; i < times; ++i) out = runner.run(check.inputs, check.symbols);
    return out;
  };
  const auto once = run({}, 1);
  CHECK(oclc::difference(once, evaluate(*check.graph, check.inputs, check.symbols), 5e-6) == "");
  CHECK(oclc::difference(run({"megakernel"}, 1), once, 2e-6) == "");
  CHECK(oclc::difference(run({}, 3), once, 0) == "");
}

TEST_CASE("parts of few results give each work-item less: one element of a window, some terms of a sum") {
  const Target target = find_target("h200");
  const std::int64_t groups = megakernel_groups(target);
  const auto window = [&](std::int64_t channels, std::int64_t side) {
    PlanCheck check;
    ConvOptions depthwise;
    depthwise.group = channels;
    depthwise.pads = {2, 2, 2, 2};
    Value* x = check.b.transpose(check.input({1, side, side, channels}), {0, 3, 1, 2});
    Value* w = check.b.constant(random_tensor(DType::f32, {channels, 1, 5, 5}, 3));
    check.out("y", check.b.transpose(check.b.conv(x, w, nullptr, depthwise), {0, 2, 3, 1}));
    return generate_strided_loops(short_compiled(check).schedule.kernels.at(0), target, groups);
  };
  const GeneratedKernel few = window(96, 14), many = window(96, 112);
  CHECK(few.schedule == "an element at a time");
  CHECK(few.groups.at(0) == Expr(21));
  CHECK(many.schedule == "four elements at a time");
  CHECK(many.groups.at(0) == Expr(groups));
  const auto shares = [&](std::int64_t terms) {
    PlanCheck check;
    Value* w = check.b.constant(random_tensor(DType::f32, {96, terms}, 3));
    check.out("y", check.b.matmul(check.input({1, terms}), w, false, true));
    return generate_group_reduction(short_compiled(check).schedule.kernels.at(0), target, groups).has_value();
  };
  CHECK(shares(48));
  CHECK(!shares(12));
}

// What a dense block reads: a batch norm before each product of all channels so far.
Value* normed(Builder& b, Value* x, std::int64_t channels, unsigned seed) {
  Value* scale = b.constant(random_tensor(DType::f32, {1, channels, 1, 1}, seed, 0.5, 1));
  Value* shift = b.constant(random_tensor(DType::f32, {1, channels, 1, 1}, seed + 1, -0.5, 0.5));
  return b.relu(b.fma(x, scale, shift));
}

TEST_CASE("short products read what a batch norm computes, and windows, whose weights lie tap by tap") {
  for (const Ints& s : {Ints{32, 48, 14, 1}, {32, 48, 14, 3}, {20, 36, 9, 3}, {8, 16, 7, 5}}) {
    CAPTURE(s);
    PlanCheck check;
    Builder& b = check.b;
    const std::int64_t in = s[0], out = s[1], side = s[2], window = s[3], pad = window / 2;
    Value* x = b.transpose(check.input({1, side, side, in}), {0, 3, 1, 2});
    ConvOptions options;
    options.pads = {pad, pad, pad, pad};
    Value* w = b.constant(random_tensor(DType::f32, {out, in, window, window}, 3, -0.3, 0.3));
    if (window == 1) x = normed(b, x, in, 11);
    check.out("y", b.relu(b.conv(x, w, nullptr, options)));
    CompileOptions implicit = short_options();
    implicit.conv = "implicit";  // alone it may be sums
    const Compiled c = compile(module_of(copy_graph(*check.graph)), implicit);
    CHECK(c.plan.launches == 1);
    CHECK(c.plan.files.at(0).source.find("contraction_small_gpu") != std::string::npos);
    CHECK(check.problem("h200", true, 3e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
  }
}

TEST_CASE("rounded products have their weights as halves of each column's own scale, in the order of a sub-group's registers") {
  for (const Ints& s : {Ints{64, 48, 14, 1}, {32, 48, 14, 3}, {20, 36, 9, 3}, {12, 19, 7, 5}}) {
    CAPTURE(s);
    PlanCheck check;
    Builder& b = check.b;
    const std::int64_t in = s[0], out = s[1], side = s[2], window = s[3], pad = window / 2;
    Value* x = b.transpose(check.input({1, side, side, in}), {0, 3, 1, 2});
    ConvOptions window_options;
    window_options.pads = {pad, pad, pad, pad};
    // Columns of very different sizes: one scale for all would lose the small ones.
    HostTensor weights = random_tensor(DType::f32, {out, in, window, window}, 3, -0.3, 0.3);
    auto* w = reinterpret_cast<float*>(weights.mutable_data());
    for (std::int64_t i = 0; i < weights.elements(); ++i) w[i] *= i / (in * window * window) % 2 ? 1e-9f : 1e3f;
    check.out("y", b.relu(b.conv(x, b.constant(std::move(weights)), nullptr, window_options)));
    CompileOptions options = short_options();
    options.precision = "tf32";
    options.conv = "implicit";  // alone it may be sums
    const Compiled c = compile(module_of(copy_graph(*check.graph)), options);
    REQUIRE(c.plan.launches == 1);
    const std::string& text = c.plan.files.at(0).source;
    CHECK(text.find("contraction_small_gpu") != std::string::npos);
    CHECK(text.find("weights") != std::string::npos);
    CHECK((text.find("masks") != std::string::npos) == (window > 1));
    PlanRunner runner(module_of(copy_graph(*check.graph)), options);
    const auto got = runner.run(check.inputs, check.symbols), wanted = evaluate(*check.graph, check.inputs, check.symbols);
    CHECK(oclc::difference(got, wanted, 1e-3) == "");
    // Of the small columns alone.
    const auto *y = reinterpret_cast<const float*>(got[0].data()), *z = reinterpret_cast<const float*>(wanted[0].data());
    double worst = 0, largest = 0;
    for (std::int64_t i = side * side; i < 2 * side * side; ++i) {
      worst = std::max(worst, static_cast<double>(std::abs(y[i] - z[i])));
      largest = std::max(largest, static_cast<double>(std::abs(z[i])));
    }
    CHECK(largest > 0);
    CHECK(worst < 1e-3 * largest);
  }
}

TEST_CASE("weights that two windows read stay as they lie") {
  PlanCheck check;
  Builder& b = check.b;
  ConvOptions options;
  options.pads = {1, 1, 1, 1};
  Value* w = b.constant(random_tensor(DType::f32, {16, 16, 3, 3}, 3, -0.3, 0.3));
  Value* x = b.transpose(check.input({1, 9, 9, 16}), {0, 3, 1, 2});
  check.out("y", b.conv(b.relu(b.conv(x, w, nullptr, options)), w, nullptr, options));
  CHECK(check.problem("h200", true, 3e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

TEST_CASE("layers of a dense block that store side by side are one body of a launch") {
  PlanCheck check;
  Builder& b = check.b;
  constexpr std::int64_t kNarrow = 16, kWide = 48, kSide = 9;
  constexpr unsigned kLayers = 4;
  ConvOptions pointwise, window;
  window.pads = {1, 1, 1, 1};
  const auto weights = [&](Ints shape, unsigned seed) { return b.constant(random_tensor(DType::f32, shape, seed, -0.3, 0.3)); };
  Value* x = b.relu(b.conv(check.input({1, 3, kSide, kSide}), weights({kNarrow, 3, 3, 3}, 5), nullptr, window));
  for (unsigned i = 0; i < kLayers; ++i) {
    const std::int64_t channels = kNarrow * (i + 1);
    Value* wide = b.conv(normed(b, x, channels, 9 * i), weights({kWide, channels, 1, 1}, 9 * i + 2), nullptr, pointwise);
    Value* narrow = b.conv(b.relu(wide), weights({kNarrow, kWide, 3, 3}, 9 * i + 3), nullptr, window);
    x = b.concat({x, narrow}, 1);
  }
  check.out("y", b.reduce("reduce_mean", x, {2, 3}, true));
  const Compiled c = short_compiled(check);
  CHECK(c.plan.launches <= 2);
  const std::string& text = c.plan.files.back().source;
  // The first and last kernel, a product of each layer, the window of three layers and the last one, which stores elsewhere.
  CHECK(text.find("_7_tile(") != std::string::npos);
  CHECK(text.find("_8_tile(") == std::string::npos);
  CHECK(check.problem("h200", true, 5e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

// Layers of 3x3 windows that take an H200 about twice as long as the host takes to launch them.
PlanCheck busy_layers(unsigned layers) {
  PlanCheck check;
  Builder& b = check.b;
  constexpr std::int64_t kChannels = 112, kSide = 28;
  ConvOptions window;
  window.pads = {1, 1, 1, 1};
  Value* x = check.input({1, kChannels, kSide, kSide});
  for (unsigned i = 0; i < layers; ++i)
    x = b.relu(b.conv(x, b.constant(random_tensor(DType::f32, {kChannels, kChannels, 3, 3}, i, -0.05, 0.05)), nullptr, window));
  check.out("y", b.reduce("reduce_mean", x, {2, 3}, true));
  return check;
}

TEST_CASE("rounded products that keep the device busy for little longer than the host are parts of a launch, or left alone") {
  const auto text_and_launches = [](unsigned layers, const std::string& precision) {
    CompileOptions options = short_options();
    options.precision = precision;
    const Compiled c = compile(module_of(copy_graph(*busy_layers(layers).graph)), options);
    std::string text;
    for (const auto& file : c.plan.files) text += file.source;
    return std::pair(text.find("contraction_small_gpu") != std::string::npos, static_cast<unsigned>(c.plan.launches));
  };
  CHECK(text_and_launches(8, "tf32") == std::pair(true, 2U));
  CHECK_FALSE(text_and_launches(3, "tf32").first);
  CHECK_FALSE(text_and_launches(8, "fp32").first);
  CHECK(text_and_launches(8, "fp32").second > 8);
}

TEST_CASE("short products that do not need each other share a launch") {
  PlanCheck check;
  const auto product = [&](std::int64_t n, unsigned seed) {
    Value* x = check.input({49, 64});
    return check.b.relu(check.b.matmul(x, check.b.constant(random_tensor(DType::f32, {n, 64}, seed)), false, true));
  };
  check.out("a", product(96, 3));
  check.out("b", product(40, 4));
  const Compiled c = short_compiled(check);
  CHECK(c.plan.launches == 1);
  CHECK(check.problem("h200", true, 3e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

}  // namespace
}  // namespace oclc::test

// Right operands as images of halves: constants packed at compile time, others by a kernel of their own when the plan runs. The
// text for other devices reads the images too, and runs here.
#include "compiler/codegen/contraction/gpu/pack_b.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/codegen/contraction/problem_of.h"
#include "tests/codegen/plan_check.h"
#include "tests/support/choices.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Arithmetic units so slow, and launches so cheap, that every product is worth the matrix units.
CompileOptions eager_options(const char* precision) {
  CompileOptions options = default_options();
  options.target = find_target("h200");
  options.target.has.fp64 = true;
  options.target.flops = 1e9;
  options.target.launch_seconds = 0;
  options.precision = precision;
  return options;
}

struct Outcome {
  std::string difference;
  int packing = 0, laying_out = 0;  // launches that prepare an operand
  // Of each product of packed operands its rows x columns, columns of a tile, and elements of a load of A.
  std::string products;
  std::vector<Loads> loads_of_a;
};

bool multiplies_halves(const Choice& choice) {
  return choice.strategy == StrategyId::wgmma_f16 || choice.strategy == StrategyId::wgmma_f16x2;
}

Outcome run(const PlanCheck& check, const char* precision, double tolerance) {
  PlanRunner runner(module_of(copy_graph(*check.graph)), eager_options(precision));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  Outcome outcome{difference(runner.run(check.inputs, check.symbols), wanted, tolerance), 0, 0, {}, {}};
  const Schedule& schedule = runner.compiled().schedule;
  outcome.packing = count_of(schedule, StrategyId::pack_b);
  outcome.laying_out = count_of(schedule, StrategyId::lay_out_a);
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.contraction || !kernel.contraction->choice || !multiplies_halves(*kernel.contraction->choice)) continue;
    const auto view = ContractionView::of(kernel);
    const Loads loads = gpu_problem_of(*view, schedule.buffers).a.loads;
    outcome.products += fmt::format("{}x{} {} {}, ", view->rows().text(), view->columns().text(),
                                    std::get<GpuChoice>(kernel.contraction->choice->tiles).sm90a->columns, loads.width);
    outcome.loads_of_a.push_back(loads);
  }
  return outcome;
}

}  // namespace

TEST_CASE("constant right operands are images at compile time: ragged sizes, taps, groups, few channels") {
  PlanCheck check;
  Builder& b = check.b;
  const auto weights = [&](Ints shape) { return b.constant(random_tensor(DType::f32, std::move(shape), 5)); };
  check.out("product", b.relu(b.matmul(check.input({130, 68}), weights({68, 70}))));
  check.out("ragged", b.matmul(check.input({65, 67}), weights({67, 129})));
  check.out("transposed", b.matmul(check.input({64, 64}), weights({32, 64}), false, true));
  ConvOptions same;
  same.pads = {1, 1, 1, 1};
  check.out("3x3", b.conv(check.input({1, 64, 9, 8}), weights({40, 64, 3, 3}), nullptr, same));
  check.out("few channels", b.conv(check.input({2, 3, 17, 16}), weights({24, 3, 3, 3}), nullptr, same));
  const Outcome split = run(check, "fp32", 2e-6);
  CHECK(split.difference == "");
  CHECK(split.packing == 0);
  // Rows of 67 elements, and images whose channels lie apart, are copied element by element.
  CHECK(split.products == "130x70 64 4, 65x129 64 1, 544x24 64 1, 64x32 64 4, 72x40 64 1, ");
  CHECK(run(check, "tf32", 3e-3).difference == "");
}

TEST_CASE("other right operands are packed when the plan runs, whatever computes them") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("product", b.matmul(check.input({130, 68}), check.input({68, 70})));
  check.out("ragged", b.matmul(check.input({65, 67}), check.input({129, 67}), false, true));
  check.out("batch", b.matmul(check.input({3, 70, 64}), check.input({3, 64, 48})));
  check.out("computed", b.matmul(check.input({70, 64}), b.tanh(check.input({64, 36}))));
  ConvOptions same;
  same.pads = {1, 1, 1, 1};
  check.out("3x3", b.conv(check.input({1, 64, 9, 8}), check.input({40, 64, 3, 3}), nullptr, same));
  const Outcome split = run(check, "fp32", 2e-6);
  CHECK(split.difference == "");
  CHECK(split.packing == 3);
  CHECK(split.products == "130x70 64 4, 65x129 64 4, 72x40 64 1, ");
  CHECK(run(check, "tf32", 3e-3).difference == "");
}

TEST_CASE("halves of large and small numbers keep their precision, whatever the columns' and rows' sizes") {
  PlanCheck check;
  Builder& b = check.b;
  HostTensor x = random_tensor(DType::f32, {64, 64}, 3), w = random_tensor(DType::f32, {64, 40}, 4);
  auto* rows = reinterpret_cast<float*>(x.mutable_data());
  auto* columns = reinterpret_cast<float*>(w.mutable_data());
  for (int i = 0; i < 64 * 64; ++i) rows[i] *= std::ldexp(1.0f, (i / 64 - 32));
  for (int i = 0; i < 64 * 40; ++i) columns[i] *= std::ldexp(1.0f, (i % 40 - 20) * 2);
  Value* y = b.matmul(check.input(std::move(x)), b.constant(std::move(w)));
  HostTensor back(DType::f32, {64, 40});
  auto* scale = reinterpret_cast<float*>(back.mutable_data());
  for (int i = 0; i < 64 * 40; ++i) scale[i] = std::ldexp(1.0f, -(i / 40 - 32) - (i % 40 - 20) * 2);
  check.out("scaled back", b.mul(y, b.constant(std::move(back))));
  CHECK(run(check, "fp32", 2e-6).difference == "");
}

TEST_CASE("products that gain nothing by it keep their right operand") {
  PlanCheck check;
  check.out("small", check.b.matmul(check.input({40, 64}), check.input({64, 40})));
  CompileOptions options = default_options();
  options.target = find_target("h200");
  options.target.has.fp64 = true;
  CHECK(count_of(compile(module_of(copy_graph(*check.graph)), options).schedule, StrategyId::pack_b) == 0);
}

TEST_CASE("left operands that are computed, or lie along the rows in no whole vectors, are laid out first") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("computed", b.matmul(b.tanh(check.input({70, 64})), check.input({64, 36})));
  check.out("transposed batch", b.matmul(check.input({3, 37, 66}), check.input({3, 37, 45}), true, false));
  const Outcome split = run(check, "fp32", 2e-6);
  CHECK(split.difference == "");
  CHECK(split.laying_out == 2);
  CHECK(run(check, "tf32", 3e-3).difference == "");
}

TEST_CASE("left operands whose rows begin anywhere are laid out as whole vectors") {
  PlanCheck check;
  check.out("odd", check.b.matmul(check.input({2, 130, 67}), check.input({2, 67, 70})));
  const Outcome split = run(check, "fp32", 2e-6);
  CHECK(split.difference == "");
  CHECK(split.laying_out == 1);
  REQUIRE(split.loads_of_a.size() == 1);
  CHECK(split.loads_of_a[0].is_copied);
  CHECK(split.loads_of_a[0].width == 4);
}

TEST_CASE("left operands whose vectors lie along the rows are copied as they lie") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("transposed", b.matmul(check.input({68, 132}), check.input({68, 70}), true, false));
  check.out("ragged batch", b.matmul(check.input({3, 37, 260}), check.input({3, 37, 45}), true, false));
  check.out("constant", b.matmul(check.input({64, 72}), b.constant(random_tensor(DType::f32, {64, 40}, 5)), true, false));
  for (const char* precision : {"fp32", "tf32"}) {
    CAPTURE(precision);
    const Outcome outcome = run(check, precision, std::string(precision) == "fp32" ? 2e-6 : 3e-3);
    CHECK(outcome.difference == "");
    CHECK(outcome.laying_out == 0);
    REQUIRE(outcome.loads_of_a.size() == 3);
    for (const Loads& loads : outcome.loads_of_a) {
      CHECK(loads.is_copied);
      CHECK_FALSE(loads.along_k);
    }
  }
}

TEST_CASE("groups share the terms of rounded products that have few tiles, taps of a line share rows of A") {
  PlanCheck check;
  Builder& b = check.b;
  const auto weights = [&](Ints shape) { return b.constant(random_tensor(DType::f32, std::move(shape), 5)); };
  Value* x = check.input({390, 2052});
  check.out("product", b.relu(b.matmul(x, weights({2052, 260}))));
  ConvOptions same;
  same.pads = {1, 1, 1, 1};
  check.out("3x3",
            b.conv(b.transpose(check.input({1, 26, 26, 160}), {0, 3, 1, 2}), weights({192, 160, 3, 3}), weights({192}), same));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const bool split : {true, false}) {
    CompileOptions options = default_options();
    options.target = find_target("h200");
    options.target.has.fp64 = true;
    options.precision = "tf32";
    if (!split) options.disabled = {"split_k"};
    PlanRunner runner(module_of(copy_graph(*check.graph)), options);
    // Two products, each in one launch.
    const Schedule& schedule = runner.compiled().schedule;
    int shared = 0;
    for (const Kernel& kernel : schedule.kernels) shared += kernel.contraction && kernel.contraction->shares > 1;
    CHECK(shared == (split ? 2 : 0));
    CHECK(runner.compiled().plan.launches == 2);
    const auto tiles = tiles_of<GpuChoice>(schedule);
    REQUIRE(tiles.size() == 2);
    // Lines of 26 positions have two more.
    CHECK(
        std::any_of(tiles.begin(), tiles.end(), [](const GpuChoice& g) { return g.sm90a && g.sm90a->more_positions() == 2; }));
    CHECK(difference(runner.run(check.inputs, check.symbols), wanted, 3e-3) == "");
    // What the groups count is zero again.
    CHECK(difference(runner.run(check.inputs, check.symbols), wanted, 3e-3) == "");
  }
}

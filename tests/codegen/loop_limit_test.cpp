// Targets whose driver ends the loops of a work-item after some iterations: kernels stay below, for every size, or are refused.
#include <doctest/doctest.h>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/choose.h"
#include "compiler/support/error.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

Target limited_cpu(std::int64_t iterations) {
  Target target = find_target("cpu-256");
  target.loop_iterations = iterations;
  return target;
}

std::string refusal(const PlanCheck& check, const Target& target) {
  CompileOptions options;
  options.target = target;
  try {
    compile(module_of(copy_graph(*check.graph)), options);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

// Elements of a graph's only kernel, divided by the work-items of its launch: at least so many does one of them.
double elements_per_item(const PlanCheck& check, const Target& target, const SymbolValues& symbols, double elements) {
  Schedule schedule = lower(*module_of(copy_graph(*check.graph)), {});
  choose_contractions(schedule, target);
  REQUIRE(schedule.kernels.size() == 1);
  const GeneratedKernel g = generate(schedule.kernels[0], schedule.buffers, target);
  return elements / static_cast<double>(product(g.groups).evaluate(symbols).value() * g.local[0]);
}

}  // namespace

TEST_CASE("llvmpipe's row is chosen for a device with the quirk") {
  DeviceFacts facts;
  facts.is_cpu = true;
  facts.vector_width = 8;
  CHECK(target_for(facts).name == "cpu-256");
  CHECK(target_for(facts).loop_iterations == Target::kNoLimit);
  facts.loop_limit = true;
  facts.max_work_group = 16;
  const Target target = target_for(facts);
  CHECK(target.name == "llvmpipe");
  CHECK(target.loop_iterations == 65535);
  CHECK(target.work_group == 16);
}

TEST_CASE("work-items of a limited target get fewer rows") {
  PlanCheck pooling;
  pooling.out("y", pooling.b.max_pool(pooling.input({1, 4, 64, 64}), {.kernel = {5, 5}}));
  const double outputs = 4 * 60 * 60;
  // 25 taps in two loops: at most 6 + 7 + 5 * 7 iterations an element.
  CHECK(elements_per_item(pooling, find_target("cpu-256"), {}, outputs) > 100);
  CHECK(elements_per_item(pooling, limited_cpu(100), {}, outputs) <= 100 / 25);
  CHECK(elements_per_item(pooling, limited_cpu(2000), {}, outputs) <= 2000 / 25);

  PlanCheck pointwise;
  pointwise.out("y", pointwise.b.relu(pointwise.input(DType::f32, {1000003}, -1, 1, {"N"})));
  CHECK(elements_per_item(pointwise, find_target("cpu-256"), {{"N", 1000003}}, 1000003) > 1000);
  CHECK(elements_per_item(pointwise, limited_cpu(1000), {{"N", 1000003}}, 1000003) <= 1000);
}

TEST_CASE("limited targets give the same numbers") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = check.input(DType::f32, {2, 3, 17, 19}, -1, 1, {"N"});
  check.symbols = {{"N", 2}};
  check.out("pooled", b.max_pool(x, {.kernel = {3, 3}}));
  check.out("chain", b.relu(b.mul(x, 2.0)));
  check.out("convolution", b.conv(x, b.constant(random_tensor(DType::f32, {5, 3, 3, 3}, 1)), nullptr, {}));
  check.out("softmax", b.softmax(x, 3));
  check.out("sum", b.reduce("reduce_sum", x, {2, 3}, false));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const Target& target : {find_target("llvmpipe"), limited_cpu(65535), limited_cpu(1000)}) {
    CAPTURE(target.name);
    CAPTURE(target.loop_iterations);
    CompileOptions options = default_options();
    options.target = target;
    PlanRunner runner(module_of(copy_graph(*check.graph)), options);
    CHECK(difference(runner.run(check.inputs, check.symbols), wanted, 2e-6) == "");
  }
}

TEST_CASE("an element with more iterations than the target makes is refused by name") {
  PlanCheck long_sum;
  long_sum.out("y", long_sum.b.reduce("reduce_sum", long_sum.input({3, 70000}), {1}, false));
  CHECK(refusal(long_sum, find_target("llvmpipe")) ==
        "node 'node': wanted at most 65535 loop iterations a work-item, all that target 'llvmpipe' makes, found up to 70008 in "
        "the "
        "loops over r1 < 70000; another device");
  CHECK(refusal(long_sum, limited_cpu(65535)) != "");
  CHECK(refusal(long_sum, find_target("gpu")) == "");

  PlanCheck unbounded;
  unbounded.out("y", unbounded.b.reduce("reduce_sum", unbounded.input(DType::f32, {3, 7}, -1, 1, {"", "T"}), {1}, false));
  CHECK(
      refusal(unbounded, find_target("llvmpipe")) ==
      "node 'node': wanted at most 65535 loop iterations a work-item, all that target 'llvmpipe' makes, found no bound for the "
      "loops over r1 < T; bind the dimension with --dim");

  // Sizes that only multiply the work-items need no bound.
  PlanCheck rows;
  rows.out("y", rows.b.reduce("reduce_sum", rows.input(DType::f32, {3, 7}, -1, 1, {"N", ""}), {1}, false));
  CHECK(refusal(rows, find_target("llvmpipe")) == "");
}

TEST_CASE("a library's products are refused for a target with a limit") {
  PlanCheck check;
  check.out("y", check.b.matmul(check.input({4, 5}), check.input({5, 6})));
  CompileOptions options;
  options.target = find_target("llvmpipe");
  options.gemm = "clblast";
  CHECK_THROWS_WITH_AS(compile(module_of(copy_graph(*check.graph)), options), doctest::Contains("--gemm own"), CompileError);
}

TEST_CASE("the row of a Hopper is chosen by the device's name, whatever its memory") {
  for (const char* name : {"NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA A100-SXM4-80GB"}) {
    DeviceFacts facts;
    facts.is_cpu = false;
    facts.compute_units = 114;
    facts.name = name;
    facts.vendor = "NVIDIA Corporation";
    CHECK((target_for(facts).name == "h200") == (std::string_view(name).starts_with("NVIDIA H")));
    CHECK(target_for(facts).compute_units == 114);
  }
}

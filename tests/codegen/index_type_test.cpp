// Whether places in memory are counted in 32 or in 64 bits.
#include "compiler/codegen/text/index_type.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/codegen/contraction/problem_of.h"
#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

Schedule lowered(const std::string& graph) { return lower(*module_of(parse_graph(graph, find_op)), {}); }

bool is_wide(const std::string& graph, bool for_any_size = false) {
  const Schedule schedule = lowered(graph);
  REQUIRE(schedule.kernels.size() == 1);
  return needs_wide_index(schedule.kernels[0], for_any_size);
}

std::string relu_of(const std::string& shape) { return "graph g(%x: f32[" + shape + "]) {\n  %0 = relu(%x)\n  return y=%0\n}"; }

}  // namespace

TEST_CASE("sizes without bound are counted in 32 bits, known ones as they need it") {
  CHECK_FALSE(is_wide(relu_of("1000, 1000")));
  CHECK(is_wide(relu_of("70000, 70000")));
  CHECK_FALSE(is_wide(relu_of("N, 3, 224, 224")));
  CHECK_FALSE(is_wide(relu_of("N, T, 768")));
  // Too large with the least sizes.
  CHECK(is_wide(relu_of("N, 70000, 70000")));
  CHECK(is_wide(relu_of("N, 3, 224, 224"), true));
  CHECK_FALSE(is_wide(relu_of("1000, 1000"), true));
  // An index that comes from memory may be anything.
  CHECK(is_wide("graph g(%x: f32[N, 8], %i: i64[N]) {\n  %0 = gather(%x, %i) {axis=0}\n  return y=%0\n}"));
}

TEST_CASE("a number that is made of sizes, and no place, keeps 64 bits") {
  CHECK(
      is_wide("graph g(%x: f32[N, 8]) {\n  %0 = iota() {axis=0, dtype=i64, shape=(N), start=(0), step=(1)}\n  return y=%0\n}"));
}

TEST_CASE("convolutions for any size on a Hopper take tables of rows, as for a known one") {
  CompileOptions options;
  options.target = find_target("h200");
  const auto loads_of = [&](const std::string& batch) {
    const std::string graph = "graph g(%x: f32[" + batch + R"(, 3, 64, 64]) {
      %w = constant f32[64, 3, 7, 7] random 1
      %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[3, 3, 3, 3], strides=[2, 2]}
      return y=%0
    })";
    const Schedule schedule = compile(module_of(parse_graph(graph, find_op)), options).schedule;
    const auto kernel = std::find_if(schedule.kernels.begin(), schedule.kernels.end(), [](const Kernel& k) {
      return k.contraction && k.contraction->choice && row_of(k.contraction->choice->strategy).needs == TargetNeeds::wgmma;
    });
    REQUIRE(kernel != schedule.kernels.end());
    return gpu_problem_of(*ContractionView::of(*kernel), schedule.buffers).a.loads;
  };
  for (const char* batch : {"N", "16"}) {
    CAPTURE(batch);
    CHECK(loads_of(batch).splits);
    CHECK(loads_of(batch).edges_of_taps);
  }
}

TEST_CASE("on a Hopper a bit for each tap says whether a row has its elements, where channels do not decide it") {
  CompileOptions options;
  options.target = find_target("h200");
  const auto text = [&](const std::string& layer) {
    std::string all;
    for (const GeneratedFile& file :
         compile(module_of(parse_graph("graph g(%x: f32[16, 32, 28, 28]) {\n" + layer + "return y=%0\n}", find_op)), options)
             .plan.files)
      all += file.source;
    return all;
  };
  const std::string one_word = "int2* restrict table", two_words = "int4* restrict table", edges = "int4* restrict edges";
  const std::string small = text(R"(%w = constant f32[64, 32, 3, 3] random 1
    %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}
  )");
  CHECK(small.find(one_word) != std::string::npos);
  CHECK(small.find(edges) == std::string::npos);
  CHECK(text(R"(%w = constant f32[64, 32, 7, 7] random 1
    %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[3, 3, 3, 3], strides=[1, 1]}
  )")
            .find(two_words) != std::string::npos);
  CHECK(text(R"(%w = constant f32[64, 32, 9, 9] random 1
    %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[4, 4, 4, 4], strides=[1, 1]}
  )")
            .find(edges) != std::string::npos);
  // Channels beyond those that are there.
  CHECK(text(R"(%w = constant f32[64, 36, 3, 3] random 1
    %p = pad(%x) {after=(0, 4, 0, 0), before=(0, 0, 0, 0), mode="constant", value=0.0}
    %0 = conv(%p, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}
  )")
            .find("int2* restrict table") == std::string::npos);
}

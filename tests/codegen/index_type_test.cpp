// Whether places in memory are counted in 32 or in 64 bits.
#include "compiler/codegen/index_type.h"

#include <doctest/doctest.h>

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
  const auto text = [&](const std::string& batch) {
    const std::string graph = "graph g(%x: f32[" + batch + R"(, 3, 64, 64]) {
      %w = constant f32[64, 3, 7, 7] random 1
      %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[3, 3, 3, 3], strides=[2, 2]}
      return y=%0
    })";
    std::string all;
    for (const GeneratedFile& file : compile(module_of(parse_graph(graph, find_op)), options).plan.files) all += file.source;
    return all;
  };
  for (const char* batch : {"N", "16"}) {
    CAPTURE(batch);
    CHECK(text(batch).find("row_edges = ") != std::string::npos);
  }
}

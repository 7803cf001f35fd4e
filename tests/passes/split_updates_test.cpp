// Updates of state that are computed where the gradients are.
#include "compiler/passes/gradients/split_updates.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// A step of momentum on 100 numbers, the product of two matrices and 28 numbers; `more`: further lines, `result`: what they
// return.
std::unique_ptr<Graph> step(int rows, const std::string& more = "", const std::string& result = "", int terms = 8) {
  const int size = rows * 2048, all = size + 128;
  return parse_graph(
      fmt::format(
          R"(graph train_step(%a: f32[{5}, {0}], %b: f32[{5}, 2048], %c: f32[100], %d: f32[28], %m: f32[{2}], %p: f32[{2}]) {{
  %rate = constant f32[] [0.25]
  %0 = matmul(%a, %b) {{trans_a=1, trans_b=0}}
  %1 = reshape(%0) {{shape=({1})}}
  %g = concat(%c, %1, %d) {{axis=0}}
  %3 = fma(%rate, %p, %g)
  %4 = add(%m, %3)
  %5 = mul(%rate, %4)
  %6 = sub(%p, %5)
{3}  return m=%4, p=%6{4}
}})",
          rows, size, all, more, result, terms),
      find_op);
}

bool is_split(const char* target, int rows, const std::string& more = "", const std::string& result = "") {
  const auto graph = step(rows, more, result);
  const bool changed = split_updates(*graph, find_target(target));
  CHECK(verify(*graph) == "");
  CHECK_FALSE(split_updates(*graph, find_target(target)));
  return changed;
}

}  // namespace

TEST_CASE("an update of large products and of what lies beside them is split, with the same numbers") {
  const auto whole = step(2048), parts = step(2048);
  REQUIRE(split_updates(*parts, find_target("h200")));
  CHECK(verify(*parts) == "");
  for (const auto& [name, value] : parts->outputs()) {
    REQUIRE(value->producer->op->name == "concat");
    CHECK(value->producer->inputs.size() == 3);
  }
  std::vector<HostTensor> inputs;
  for (const auto& input : whole->inputs()) {
    std::vector<std::int64_t> shape;
    for (const Expr& e : input->type.shape) shape.push_back(e.value());
    inputs.push_back(random_tensor(DType::f32, shape, static_cast<unsigned>(inputs.size()), -1, 1));
  }
  CHECK(difference(evaluate(*parts, inputs), evaluate(*whole, inputs), 0) == "");
}

TEST_CASE("an update stays whole for small products, readers that need all gradients, and other targets") {
  CHECK(is_split("h200", 2048));
  CHECK_FALSE(is_split("h200", 1024));
  CHECK_FALSE(is_split("h200", 2048, "  %7 = reduce_sum(%g) {axes=[0], keepdims=0}\n", ", norm=%7"));
  CHECK_FALSE(is_split("h200", 2048, "", ", gradients=%g"));
  CHECK_FALSE(is_split("gpu", 2048));
  CHECK_FALSE(is_split("cpu", 2048));
}

TEST_CASE("a large product's kernel stores the new state in place, and no gradient") {
  for (const bool splits : {true, false}) {
    const auto module = module_of(step(2048, "", "", 64));
    for (const char* name : {"m", "p"}) module->states.push_back({name, {DType::f32, {Expr(2048 * 2048 + 128)}}, {}, {}});
    CompileOptions options = default_options();
    options.target = find_target("h200");
    if (!splits) options.disabled = {"split_updates"};
    const Compiled compiled = compile(module, options);
    const auto& kernels = compiled.schedule.kernels;
    const auto& files = compiled.plan.files;
    const auto& buffers = compiled.schedule.buffers;
    CHECK(splits ==
          std::any_of(kernels.begin(), kernels.end(), [](const Kernel& k) { return k.contraction && k.stores.size() == 2; }));
    CHECK(splits == std::none_of(buffers.begin(), buffers.end(), [](const Buffer& b) {
            return b.kind == BufferKind::arena && b.elements.is_constant() && b.elements.value() > 1 << 20;
          }));
    // Both results of some rows are computed before any is stored.
    CHECK(splits == std::any_of(files.begin(), files.end(), [](const GeneratedFile& f) {
            const auto made = f.source.find("others[j][0] = "), stored = f.source.find("(float4)(others[j][0])");
            return made != std::string::npos && stored != std::string::npos && made < stored;
          }));
  }
}

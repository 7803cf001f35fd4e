#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "compiler/compile.h"
#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/passes/gradients/mixed_precision.h"

using namespace oclc;

namespace {

// Numbers of the nodes whose results are stored in 16 bits.
std::set<int> narrowed(const std::string& text, const std::vector<std::string>& states, bool keep_pairs = false) {
  const auto graph = parse_graph(text, find_op);
  std::vector<StateVariable> variables;
  for (const std::string& name : states) variables.push_back({name, {}, {}, {}});
  const bool changed = store_activations(*graph, variables, DType::bf16, keep_pairs);
  std::set<int> found;
  int i = 0;
  for (const Node* node : graph->nodes()) {
    if (node->has(kStoredAs)) {
      CHECK((node->get<DType>(kStoredAs) == DType::bf16));
      found.insert(i);
    }
    ++i;
  }
  CHECK(changed == !found.empty());
  return found;
}

constexpr const char* kStep = R"(
  graph train_step(%x: f32[8, 16], %w: f32[16, 16]) {
    %0 = mul(%w, %w)
    %1 = matmul(%x, %0) {trans_a=0, trans_b=0}
    %2 = reduce_mean(%1) {axes=[0], keepdims=1}
    %3 = mul(%2, %2)
    %4 = sub(%1, %3)
    %5 = relu(%4)
    %6 = matmul(%5, %w) {trans_a=0, trans_b=1}
    %7 = log_softmax(%6) {axis=1}
    %8 = exp(%7)
    %9 = matmul(%x, %8) {trans_a=1, trans_b=0}
    %10 = mul(%9, %9)
    return w=%10, loss=%7
  })";

}  // namespace

TEST_CASE(
    "activations that products read further on are stored in 16 bits; weights, statistics and gradients of weights are not") {
  CHECK(narrowed(kStep, {"w"}) == std::set<int>{1, 4, 5, 6, 8});
}

TEST_CASE("what products of two computed operands read may stay as it is") {
  const char* attention = R"(
  graph predict(%x: f32[8, 16]) {
    %0 = constant f32[16, 16] splat 0.5
    %1 = matmul(%x, %0) {trans_a=0, trans_b=0}
    %2 = transpose(%1) {perm=[1, 0]}
    %3 = matmul(%1, %2) {trans_a=0, trans_b=0}
    %4 = matmul(%3, %1) {trans_a=0, trans_b=0}
    %5 = relu(%4)
    %6 = matmul(%5, %0) {trans_a=0, trans_b=0}
    return y=%6
  })";
  CHECK(narrowed(attention, {}) == std::set<int>{1, 2, 3, 4, 5});
  CHECK(narrowed(attention, {}, true) == std::set<int>{4, 5});
}

TEST_CASE("an entry updates a state that is one of its outputs") {
  const auto graph = parse_graph(kStep, find_op);
  const StateVariable w{"w", {}, {}, {}}, v{"v", {}, {}, {}};
  CHECK(updates_state(*graph, std::vector{w}));
  CHECK_FALSE(updates_state(*graph, std::vector{v}));
}

TEST_CASE("products of bfloat16 leave the activations of a training step as they are") {
  const auto stored = [](const std::string& state) {
    Module module;
    module.entries.push_back(parse_graph(kStep, find_op));
    module.states.push_back({state, {}, {}, {}});
    CompileOptions options;
    options.target = find_target("cpu-amx");
    options.precision = "bf16";
    run_pipeline(module, options);
    const std::vector<Node*> nodes = module.entries[0]->nodes();
    return std::count_if(nodes.begin(), nodes.end(), [](const Node* node) { return node->has(kStoredAs); });
  };
  CHECK(stored("w") == 0);
  CHECK(stored("v") > 0);
}

TEST_CASE("what depends on state alone is never stored in 16 bits") {
  CHECK(narrowed(R"(
  graph init(%w: f32[16, 16]) {
    %0 = mul(%w, %w)
    %1 = matmul(%w, %0) {trans_a=0, trans_b=0}
    %2 = matmul(%1, %0) {trans_a=0, trans_b=0}
    return w=%2
  })",
                 {"w"})
            .empty());
}

// What the backward pass reads is computed again from as few kept bytes as possible.
#include "compiler/passes/gradients/recompute.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "compiler/ir/copy.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/training/training.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Two layers u = x w, g = activation(u) and the mean squared error, trained by gradient descent.
Module network(const std::string& activation) {
  Module module = parse_module(R"(
    module "m"
    state "w" : f32[20, 50] = f32[20, 50] random 3
    state "v" : f32[50, 40] = f32[50, 40] random 4
    graph predict(%x: f32[64, 20], %w: f32[20, 50], %v: f32[50, 40]) {
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
)" + activation + R"(
      %4 = matmul(%3, %v) {trans_a=0, trans_b=0}
      return y=%4
    })",
                               find_op);
  build_training(module, {parse_loss("mse"), parse_optimizer("sgd,lr=0.1"), {}, {}, 0});
  return module;
}

const std::string kGated = "      %1 = tanh(%0)\n      %2 = sigmoid(%1)\n      %3 = mul(%0, %2)";
const std::string kRelu = "      %3 = relu(%0)";

// The training step behind the pipeline.
std::unique_ptr<Graph> step_of(const Module& module) {
  auto graph = copy_graph(*module.entries.at(1));
  run_passes(*graph);
  return graph;
}

int copies(const Graph& graph) {
  const auto nodes = graph.nodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [](const Node* n) { return n->has("recompute"); }));
}

std::vector<HostTensor> inputs_of(const Graph& graph) {
  std::vector<HostTensor> inputs;
  for (const auto& input : graph.inputs())
    inputs.push_back(random_tensor(input->type.dtype, bind_shape(input->type.shape, {}), 7));
  return inputs;
}

}  // namespace

TEST_CASE("an activation of several operators is computed again from what a product gave") {
  const Module module = network(kGated);
  const auto before = step_of(module), after = step_of(module);
  REQUIRE(recompute(*after, 0));
  CHECK(verify(*after) == "");
  CHECK(copies(*after) >= 3);  // tanh, sigmoid, mul
  const auto inputs = inputs_of(*before);
  const auto wanted = evaluate(*before, inputs), found = evaluate(*after, inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(difference(found.at(i), wanted.at(i)).max_abs == 0);
}

TEST_CASE("no operator of the forward pass is left to the backward pass but products") {
  const auto graph = step_of(network(kGated));
  REQUIRE(recompute(*graph, 0));
  std::set<const Node*> forward;
  std::vector<const Node*> stack;
  for (const auto& [name, value] : graph->outputs()) {
    if (name == "loss") stack.push_back(value->producer);
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!forward.insert(node).second) continue;
    for (const Value* input : node->inputs) {
      if (input->producer) stack.push_back(input->producer);
    }
  }
  for (const Node* node : forward) {
    if (node->op->kind != OpKind::elementwise || node->output()->type.elements() != Expr(64 * 50)) continue;
    for (const Node* user : node->output()->users) CHECK(forward.count(user) == 1);
  }
}

TEST_CASE("a value that is as large as what it would be computed from is kept") {
  const auto graph = step_of(network(kRelu));
  recompute(*graph, 0);
  for (const Node* node : graph->nodes()) CHECK((node->op->name != "relu" || !node->has("recompute")));
}

TEST_CASE("small values are kept where large ones alone are asked for") {
  const auto graph = step_of(network(kGated));
  CHECK_FALSE(recompute(*graph, 64 * 50 * 4 + 1));
  CHECK(recompute(*graph, 64 * 50 * 4));
}

TEST_CASE("nothing is computed again without being asked for") {
  const auto graph = step_of(network(kGated));
  CHECK_FALSE(recompute(*graph, kRecomputeNone));
  CHECK(copies(*graph) == 0);
}

namespace {

// Convolution, batch normalisation and ReLU of `size` x `size` pictures, followed by a convolution.
Module normalised(int size) {
  const std::string x = std::to_string(size);
  Module module = parse_module(
      R"(
    module "m"
    state "w" : f32[8, 4, 3, 3] = f32[8, 4, 3, 3] random 3
    state "s" : f32[8] = f32[8] random 4
    state "b" : f32[8] = f32[8] random 5
    state "m" : f32[8] = f32[8] random 6
    state "v" : f32[8] = f32[8] random 7
    state "u" : f32[4, 8, 3, 3] = f32[4, 8, 3, 3] random 8
    graph predict(%x: f32[2, 4, )" +
          x + ", " + x + R"(], %w: f32[8, 4, 3, 3], %s: f32[8], %b: f32[8], %m: f32[8], %v: f32[8], %u: f32[4, 8, 3, 3]) {
      %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}
      %1 = batch_norm(%0, %s, %b, %m, %v) {epsilon=0.1, momentum=0.9}
      %2 = relu(%1)
      %3 = conv(%2, %u) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}
      return y=%3
    })",
      find_op);
  build_training(module, {parse_loss("mse"), parse_optimizer("sgd,lr=0.1"), {}, {}, 0});
  return module;
}

}  // namespace

TEST_CASE("of a convolution, its normalisation and its relu the convolution's result is kept, unasked") {
  const Module module = normalised(96);
  const auto before = step_of(module), after = step_of(module);
  REQUIRE(recompute(*after, kRecomputeNone));
  CHECK(verify(*after) == "");
  int relus = 0;
  for (const Node* node : after->nodes()) {
    if (node->op->name != "relu") continue;
    relus += node->has("recompute") ? 1 : 0;
    if (node->has("recompute")) continue;
    for (const Node* user : node->output()->users) CHECK(user->op->name == "conv");
  }
  CHECK(relus == 1);
  const auto inputs = inputs_of(*before);
  const auto wanted = evaluate(*before, inputs), found = evaluate(*after, inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(difference(found.at(i), wanted.at(i)).max_abs == 0);
}

TEST_CASE("small values are kept unless asked for") {
  const auto graph = step_of(normalised(8));
  CHECK_FALSE(recompute(*graph, kRecomputeNone));
}

TEST_CASE("an entry without a backward pass stays as it is") {
  const Module module = network(kGated);
  auto graph = copy_graph(*module.entries.at(0));
  run_passes(*graph);
  const std::string before = print_graph(*graph);
  CHECK_FALSE(recompute(*graph, 0));
  CHECK(print_graph(*graph) == before);
}

TEST_CASE("chains of any length") {
  std::string chain = "      %1 = tanh(%0)\n";
  constexpr int kLength = 3000;
  for (int i = 0; i < kLength; ++i)
    chain += "      %" + std::to_string(i + 10) + " = tanh(%" + (i == 0 ? "1" : std::to_string(i + 9)) + ")\n";
  const auto graph = step_of(network(chain + "      %3 = mul(%0, %" + std::to_string(kLength + 9) + ")"));
  CHECK(recompute(*graph, 0));
  CHECK(verify(*graph) == "");
}

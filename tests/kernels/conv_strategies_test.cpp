#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/ops/builder.h"
#include "compiler/ops/evaluate.h"
#include "compiler/passes/choose_convolution.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

struct Case {
  std::string name;
  Ints x, w;  // x[0] is the value of a symbolic batch
  ConvOptions options;
  bool bias = true;
};

std::vector<Case> cases() {
  return {
      {"one tap", {2, 5, 6, 7}, {9, 5, 1, 1}, {}},
      {"one tap, stride 2", {1, 8, 7, 7}, {16, 8, 1, 1}, {.strides = {2, 2}}},
      {"3x3", {2, 16, 9, 7}, {24, 16, 3, 3}, {.pads = {1, 1, 1, 1}}},
      {"3x3 without padding or bias", {1, 7, 8, 8}, {5, 7, 3, 3}, {}, false},
      {"first layer, 7x7 stride 2", {1, 3, 17, 19}, {20, 3, 7, 7}, {.strides = {2, 2}, .pads = {3, 3, 3, 3}}},
      {"asymmetric pads", {2, 4, 6, 5}, {17, 4, 3, 2}, {.strides = {1, 2}, .pads = {0, 1, 2, 0}}},
      {"asymmetric pads, 3x3", {2, 4, 6, 5}, {17, 4, 3, 3}, {.pads = {0, 1, 2, 0}}},
      {"dilation", {1, 6, 11, 11}, {8, 6, 3, 3}, {.dilations = {2, 3}, .pads = {2, 3, 2, 3}}},
      {"groups", {2, 12, 5, 6}, {18, 4, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 3}},
      {"depthwise", {1, 20, 9, 8}, {20, 1, 3, 3}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}, .group = 20}},
      {"depthwise with two features a channel", {1, 6, 5, 5}, {12, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 6}},
      {"one dimension", {2, 4, 21}, {6, 4, 5}, {.strides = {3}, .pads = {2, 1}}},
      {"one dimension in groups", {2, 4, 21}, {6, 2, 5}, {.group = 2}},
      {"three dimensions", {1, 3, 4, 5, 6}, {8, 3, 2, 3, 3}, {.strides = {1, 2, 1}, .pads = {1, 0, 1, 0, 1, 1}}},
      {"a single position", {3, 10, 3, 3}, {17, 10, 3, 3}, {}},
      {"wide and flat", {1, 33, 1, 40}, {31, 33, 3, 3}, {.pads = {1, 1, 1, 1}}},
  };
}

// relu(conv(x) + r) and the sum before it, so that an epilogue with a second operand is part of each case.
std::unique_ptr<Graph> graph_of(const Case& c, bool symbolic) {
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, "layer");
  TensorType type{DType::f32, Shape(c.x.begin(), c.x.end())};
  if (symbolic) type.shape[0] = Expr::symbol("N");
  Value* x = graph->add_input("x", type);
  Value* w = b.constant(random_tensor(DType::f32, c.w, 2), "w");
  Value* bias = c.bias ? b.constant(random_tensor(DType::f32, {c.w[0]}, 3), "bias") : nullptr;
  Value* y = b.conv(x, w, bias, c.options);
  Value* r = graph->add_input("r", y->type);
  Value* sum = b.add(y, r);
  graph->add_output("y", b.relu(sum));
  return graph;
}

std::vector<HostTensor> inputs_of(const Case& c, const Graph& graph) {
  const HostTensor x = random_tensor(DType::f32, c.x, 4);
  const Ints shape = bind_shape(graph.inputs()[1]->type.shape, {{"N", c.x[0]}});
  return {x, random_tensor(DType::f32, shape, 5)};
}

void check_all(const std::string& strategy, const std::string& precision, double tolerance) {
  for (const Case& c : cases()) {
    for (const bool symbolic : {false, true}) {
      CAPTURE(c.name);
      CAPTURE(symbolic);
      const auto graph = graph_of(c, symbolic);
      CompileOptions options = default_options();
      options.conv = strategy;
      options.precision = precision;
      const Difference d = compare_with_reference(*graph, inputs_of(c, *graph), options);
      CHECK(d.max_rel <= tolerance);
    }
  }
}

}  // namespace

TEST_CASE("implicit convolutions equal the reference") { check_all("implicit", "fp32", 2e-6); }
TEST_CASE("im2col convolutions equal the reference") { check_all("im2col", "fp32", 2e-6); }
TEST_CASE("direct convolutions equal the reference") { check_all("direct", "fp32", 2e-6); }
TEST_CASE("winograd convolutions with tiles of 2 equal the reference") { check_all("winograd", "fp32", 3e-6); }
TEST_CASE("winograd convolutions with tiles of 4 equal the reference") { check_all("winograd", "fast", 2e-5); }
TEST_CASE("convolutions by the cost model equal the reference") { check_all("auto", "fp32", 3e-6); }

// Which convolutions a GPU computes by tiles, and which by work-items that share the terms of a result.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>

#include "compiler/ir/graph.h"
#include "compiler/ops/builder.h"
#include "compiler/passes/layout/choose_convolution.h"
#include "compiler/passes/layout/gathered_conv_cost.h"

namespace oclc::test {
namespace {

struct Drawn {
  Expr images = Expr(1);
  std::int64_t channels = 40, size = 7, features = 128, kernel = 3, groups = 1, stride = 1, dilation = 3;
};

std::unique_ptr<Graph> graph_of(const Drawn& d) {
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, "layer");
  Value* x = graph->add_input("x", {DType::f32, {d.images, Expr(d.channels), Expr(d.size), Expr(d.size)}});
  const std::int64_t pad = d.kernel / 2 * d.dilation;
  graph->add_output(
      "y", b.conv(x, b.constant(HostTensor(DType::f32, {d.features, d.channels / d.groups, d.kernel, d.kernel})), nullptr,
                  {.strides = {d.stride, d.stride},
                   .dilations = {d.dilation, d.dilation},
                   .pads = {pad, pad, pad, pad},
                   .group = d.groups}));
  return graph;
}

std::string strategy(const Drawn& d, const char* target, Contract contract = Contract::fp32) {
  const auto graph = graph_of(d);
  Target row = find_target(target);
  row.precision = precision_under(contract);
  choose_convolution(*graph, {row, "auto"});
  return graph->outputs()[0].second->producer->get_or<std::string>("strategy", "rewritten");
}

const Node& convolution(const Graph& graph) { return *graph.outputs()[0].second->producer; }

TEST_CASE("a convolution of few results and many steps shares its terms on a GPU, under each contract") {
  for (const Contract contract : {Contract::fp32, Contract::tf32}) {
    CHECK(strategy({}, "h200", contract) == "conv_direct");
    CHECK(strategy({.channels = 40, .size = 20, .features = 16, .kernel = 5}, "h200", contract) == "conv_direct");
  }
}

TEST_CASE("many multiplications, few steps and open sizes stay with tiles") {
  CHECK(strategy({.channels = 64, .size = 56, .features = 64}, "h200") == "conv_implicit");
  CHECK(strategy({.channels = 512, .size = 7, .features = 512}, "h200") == "conv_implicit");
  CHECK(strategy({.channels = 16, .size = 31, .features = 192}, "h200") == "conv_implicit");
  CHECK(strategy({.images = Expr::symbol("N")}, "h200") == "conv_implicit");
  const auto known = [](const Drawn& drawn, const char* target) {
    ConvolutionOptions options;
    options.target = find_target(target);
    return gathered_seconds(convolution(*graph_of(drawn)), options).has_value();
  };
  CHECK_FALSE(known({}, "cpu"));
  CHECK_FALSE(known({.kernel = 1}, "h200"));
  CHECK_FALSE(known({.dilation = 1}, "h200"));
  CHECK(known({.stride = 2, .dilation = 1}, "h200"));
  CHECK_FALSE(known({.images = Expr::symbol("N")}, "h200"));
  CHECK_FALSE(known({}, "llvmpipe"));
}

TEST_CASE("one tap and plain windows share their terms where no launch joins several kernels") {
  CHECK(strategy({.channels = 160, .size = 10, .features = 24, .kernel = 1}, "h200") == "conv_direct");
  CHECK(strategy({.dilation = 1}, "h200") == "conv_direct");
  CHECK(strategy({.channels = 250, .size = 28, .features = 250, .kernel = 1}, "h200") == "conv_implicit");
  CHECK(strategy({.channels = 64, .size = 56, .features = 64, .dilation = 1}, "h200") == "conv_implicit");
}

TEST_CASE("rounded products of wide groups are of patches") {
  const Drawn wide{.channels = 384, .size = 10, .features = 384, .groups = 8, .dilation = 1};
  CHECK(strategy(wide, "h200", Contract::tf32) == "rewritten");
  CHECK(strategy(wide, "h200", Contract::fp32) == "conv_direct");
  CHECK(strategy({.channels = 384, .size = 19, .features = 384, .groups = 16}, "h200", Contract::tf32) == "conv_implicit");
}

// Microseconds on an H100: the launch by tiles, and by shared sums.
TEST_CASE("estimates of gathered convolutions order what was measured") {
  struct Measured {
    Drawn convolution;
    double product, sums;
  };
  ConvolutionOptions options;
  options.target = find_target("h200");
  for (const Measured& m :
       {Measured{{}, 13.6, 8.6}, Measured{{.channels = 96, .size = 16, .features = 40, .kernel = 5}, 30, 19},
        Measured{{.channels = 512, .size = 9, .features = 512, .groups = 8}, 20.3, 15},
        Measured{{.channels = 384, .features = 384, .groups = 16}, 10.1, 7.9},
        Measured{{.images = Expr(2), .channels = 80, .size = 10, .features = 80, .groups = 2}, 21.4, 9.4}}) {
    CAPTURE(m.product);
    const auto estimate = gathered_seconds(convolution(*graph_of(m.convolution)), options);
    REQUIRE(estimate);
    CHECK(estimate->sums < estimate->product);
    CHECK(std::abs(estimate->sums * 1e6 / m.sums - 1) < 0.25);
    CHECK(std::abs(estimate->product * 1e6 / m.product - 1) < 0.45);
  }
}

}  // namespace
}  // namespace oclc::test

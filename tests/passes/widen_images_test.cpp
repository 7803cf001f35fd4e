// Images of three channels that are widened for matrix units.
#include "compiler/passes/layout/widen_images.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"

using namespace oclc;

namespace {

std::unique_ptr<Graph> layer(const std::string& x, const std::string& w, bool constant = true) {
  const std::string weights = constant ? fmt::format("  %w = constant f32[{}] random 1\n", w) : "",
                    input = constant ? "" : fmt::format(", %w: f32[{}]", w);
  return parse_graph(fmt::format("graph g(%x: f32[{}]{}) {{\n{}  %0 = conv(%x, %w) {{dilations=[1, 1], group=1, "
                                 "pads=[1, 1, 1, 1], strides=[2, 2]}}\n  return y=%0\n}}",
                                 x, input, weights),
                     find_op);
}

bool is_widened(Graph& graph, const char* target) {
  const bool changed = widen_images(graph, find_target(target));
  CHECK(verify(graph).empty());
  CHECK_FALSE(widen_images(graph, find_target(target)));
  return changed;
}

HostTensor ramp(const std::vector<std::int64_t>& shape) {
  HostTensor tensor(DType::f32, shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, static_cast<double>(i * 7919 % 1000) / 500 - 1);
  return tensor;
}

}  // namespace

TEST_CASE("three channels become four where loaders' copies take longer than a launch") {
  const auto graph = layer("16, 3, 224, 224", "64, 3, 7, 7");
  REQUIRE(is_widened(*graph, "h200"));
  const Node* conv = graph->outputs()[0].second->producer;
  CHECK(conv->inputs[0]->type.shape[1] == Expr(4));
  CHECK(conv->inputs[0]->layout.order.back() == 1);
  CHECK(conv->inputs[1]->type.shape[1] == Expr(4));
  CHECK(is_widened(*layer("N, 3, 224, 224", "64, 3, 7, 7"), "h200"));
  CHECK(is_widened(*layer("16, 3, 224, 224", "64, 3, 7, 7", false), "h200"));  // weights that are trained
  // So few copies; one tap; four channels and one; few features; no matrix units.
  CHECK_FALSE(is_widened(*layer("1, 3, 32, 32", "64, 3, 7, 7"), "h200"));
  CHECK_FALSE(is_widened(*layer("16, 3, 224, 224", "64, 3, 1, 1"), "h200"));
  CHECK_FALSE(is_widened(*layer("16, 4, 224, 224", "64, 4, 7, 7"), "h200"));
  CHECK_FALSE(is_widened(*layer("16, 1, 224, 224", "64, 1, 7, 7"), "h200"));
  CHECK_FALSE(is_widened(*layer("16, 3, 224, 224", "16, 3, 7, 7"), "h200"));
  CHECK_FALSE(is_widened(*layer("16, 3, 224, 224", "64, 3, 7, 7"), "gpu"));
  CHECK_FALSE(is_widened(*layer("16, 3, 224, 224", "64, 3, 7, 7"), "cpu"));
}

TEST_CASE("a convolution of a widened image has the same result, and two of one image share it, with weights given or not") {
  const std::string text = R"(graph g(%x: f32[64, 3, 40, 40], %v: f32[32, 3, 3, 3]) {
    %w = constant f32[32, 3, 5, 5] random 2
    %0 = conv(%x, %v) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}
    %1 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[2, 2, 2, 2], strides=[1, 1]}
    %2 = add(%0, %1)
    return y=%2
  })";
  const auto plain = parse_graph(text, find_op), wide = parse_graph(text, find_op);
  Target target = find_target("h200");
  target.launch_seconds = 0;
  REQUIRE(widen_images(*wide, target));
  const auto nodes = wide->nodes();
  CHECK(std::count_if(nodes.begin(), nodes.end(), [](const Node* n) { return n->op->name == "pad"; }) ==
        2);  // the image, weights
  const std::vector inputs{ramp({64, 3, 40, 40}), ramp({32, 3, 3, 3})};
  const HostTensor wanted = evaluate(*plain, inputs).at(0), found = evaluate(*wide, inputs).at(0);
  double worst = 0;
  for (std::int64_t i = 0; i < wanted.elements(); ++i) worst = std::max(worst, std::abs(found.at(i) - wanted.at(i)));
  CHECK(worst < 1e-5);
}

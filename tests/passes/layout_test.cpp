// Which values of feature maps will be stored channels-last.
#include "compiler/passes/layout/layout.h"

#include <doctest/doctest.h>

#include "compiler/ir/graph.h"
#include "compiler/ops/builder.h"

using namespace oclc;

namespace {

// x + relu(x), again and again: twice as many paths lead to the front with each.
Value* diamonds(Builder& b, Value* x, int count) {
  for (int i = 0; i < count; ++i) x = b.add(x, b.relu(x));
  return x;
}

}  // namespace

TEST_CASE("what follows elementwise work behind a convolution becomes channels-last, along however many paths") {
  Graph graph;
  Builder b(graph, "node");
  Value* x = graph.add_input("x", {DType::f32, {Expr(1), Expr(8), Expr(9), Expr(9)}});
  CHECK_FALSE(becomes_channels_last(x));
  CHECK_FALSE(becomes_channels_last(diamonds(b, x, 64)));
  Value* features = b.conv(x, graph.add_input("w", {DType::f32, {Expr(8), Expr(8), Expr(3), Expr(3)}}), nullptr, {});
  CHECK(becomes_channels_last(features));
  CHECK(becomes_channels_last(diamonds(b, features, 64)));
}

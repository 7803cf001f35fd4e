// Data gradients of strided convolutions as a convolution for each class of positions.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/passes/pipeline/pass.h"
#include "tests/support/graph_check.h"

using namespace oclc;

namespace {

struct Case {
  const char *y, *w, *strides, *pads, *size;
};

std::string text_of(const Case& c) {
  return fmt::format(
      "graph g(%y: f32[{}], %w: f32[{}]) {{\n  %0 = conv_transpose(%y, %w) {{strides=[{}], dilations=[1, 1], "
      "pads=[{}], group=1, output_shape=({})}}\n  return x=%0\n}}\n",
      c.y, c.w, c.strides, c.pads, c.size);
}

// Convolutions that it becomes; the numbers stay.
std::ptrdiff_t convolutions(const Case& c, bool separate = true) {
  const auto graph = parse_graph(text_of(c), find_op), original = parse_graph(text_of(c), find_op);
  PassContext context;
  context.separates_classes = separate;
  CHECK(expand_gradients(*graph, context));
  CHECK(verify(*graph) == "");
  const SymbolValues symbols = small_symbols(*original);
  const auto inputs = random_inputs(*original, symbols, 1);
  CHECK(difference(evaluate(*graph, inputs, symbols), evaluate(*original, inputs, symbols)) == "");
  const std::vector<Node*> nodes = graph->nodes();
  return std::count_if(nodes.begin(), nodes.end(), [](const Node* node) { return node->op->name == "conv"; });
}

const Case kHalves{"N, 4, 7, 5", "4, 3, 3, 3", "2, 2", "1, 1, 1, 1", "14, 9"};

}  // namespace

TEST_CASE("classes of positions with different taps are convolutions of their own") {
  CHECK(convolutions(kHalves) == 4);
  CHECK(convolutions({"1, 2, 6, 5", "2, 3, 4, 5", "3, 3", "2, 3, 1, 0", "16, 14"}) == 9);
  CHECK(convolutions({"1, 2, 5, 8", "2, 3, 3, 3", "2, 1", "0, 2, 0, 0", "11, 8"}) == 2);
}

TEST_CASE("classes stay features of one convolution where all have the same taps, few positions, or launches cost more") {
  CHECK(convolutions(kHalves, false) == 1);
  CHECK(convolutions({"1, 2, 6, 6", "2, 3, 2, 2", "2, 2", "0, 0, 0, 0", "12, 12"}) == 1);
  CHECK(convolutions({"1, 2, 20, 20", "2, 3, 4, 4", "2, 2", "1, 1, 1, 1", "40, 40"}) == 1);
  CHECK(convolutions({"1, 2, 2, 7", "2, 3, 3, 3", "2, 2", "1, 1, 1, 1", "4, 14"}) == 1);
  CHECK(convolutions({"1, 2, 5, 5", "2, 3, 3, 3", "1, 1", "1, 1, 1, 1", "5, 5"}) == 1);
}

// The operators of gradients on a device, against what they mean on the host.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Worst relative difference of a graph's results from evaluate(), its symbol N bound to `n`, fused and unfused.
double worst_difference(const std::string& text, std::int64_t n = 2) {
  const auto graph = parse_graph(text, find_op);
  std::vector<HostTensor> inputs;
  unsigned seed = 1;
  for (const auto& input : graph->inputs()) {
    const double high = is_integer(input->type.dtype) ? 4 : 1;
    inputs.push_back(
        random_tensor(input->type.dtype, bind_shape(input->type.shape, {{"N", n}}), seed++, high == 1 ? -1 : 0, high));
  }
  CompileOptions unfused = default_options();
  unfused.disabled = {"fuse"};
  return std::max(compare_with_reference(*graph, inputs).max_rel, compare_with_reference(*graph, inputs, unfused).max_rel);
}

struct Convolution {
  const char* name;
  const char *x, *w, *y;  // shapes; images x[N, ..]
  const char* attributes;
  const char *in, *kernel;
};

const Convolution kConvolutions[] = {
    {"3x3", "N, 19, 13, 11", "32, 19, 3, 3", "N, 32, 13, 11", "strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1",
     "13, 11", "3, 3"},
    {"3x3 whole tiles", "N, 32, 13, 13", "64, 32, 3, 3", "N, 64, 13, 13",
     "strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1", "13, 13", "3, 3"},
    {"many channels", "N, 256, 13, 13", "256, 256, 3, 3", "N, 256, 13, 13",
     "strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1", "13, 13", "3, 3"},
    {"a long sum", "N, 3, 50, 50", "16, 3, 3, 3", "N, 16, 50, 50",
     "strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1", "50, 50", "3, 3"},
    {"a long sum, 1x1", "4, 16, 42, 42", "16, 16, 1, 1", "4, 16, 42, 42",
     "strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0], group=1", "42, 42", "1, 1"},
    {"stride", "N, 16, 14, 9", "32, 16, 3, 3", "N, 32, 7, 5", "strides=[2, 2], dilations=[1, 1], pads=[1, 1, 1, 1], group=1",
     "14, 9", "3, 3"},
    {"1x1 stride", "N, 16, 9, 9", "32, 16, 1, 1", "N, 32, 5, 5", "strides=[2, 2], dilations=[1, 1], pads=[0, 0, 0, 0], group=1",
     "9, 9", "1, 1"},
    {"1x1", "N, 17, 5, 6", "16, 17, 1, 1", "N, 16, 5, 6", "strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0], group=1",
     "5, 6", "1, 1"},
    {"dilated, asymmetric", "N, 3, 12, 12", "8, 3, 3, 3", "N, 8, 10, 9",
     "strides=[1, 1], dilations=[2, 2], pads=[1, 0, 1, 1], group=1", "12, 12", "3, 3"},
    {"groups", "N, 8, 6, 6", "12, 4, 3, 3", "N, 12, 6, 6", "strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=2",
     "6, 6", "3, 3"},
    {"depthwise", "N, 24, 9, 9", "24, 1, 3, 3", "N, 24, 5, 5", "strides=[2, 2], dilations=[1, 1], pads=[1, 1, 1, 1], group=24",
     "9, 9", "3, 3"},
    {"first layer", "N, 3, 31, 31", "16, 3, 7, 7", "N, 16, 16, 16",
     "strides=[2, 2], dilations=[1, 1], pads=[3, 3, 3, 3], group=1", "31, 31", "7, 7"},
    {"stride 3", "N, 5, 16, 14", "8, 5, 4, 5", "N, 8, 6, 5", "strides=[3, 3], dilations=[1, 1], pads=[2, 3, 1, 0], group=1",
     "16, 14", "4, 5"},
    {"one axis", "N, 5, 17", "7, 5, 4", "N, 7, 16", "strides=[1], dilations=[1], pads=[1, 1], group=1", "17", "4"},
    {"three axes", "N, 2, 4, 5, 6", "3, 2, 2, 3, 2", "N, 3, 3, 3, 5",
     "strides=[1, 1, 1], dilations=[1, 1, 1], pads=[0, 0, 0, 0, 0, 0], group=1", "4, 5, 6", "2, 3, 2"},
};

}  // namespace

TEST_CASE("the adjoint of a convolution in its data") {
  for (const Convolution& c : kConvolutions) {
    CAPTURE(c.name);
    CHECK(worst_difference(fmt::format("graph g(%y: f32[{}], %w: f32[{}]) {{\n  %0 = conv_transpose(%y, %w) {{{}, "
                                       "output_shape=({})}}\n  return x=%0\n}}\n",
                                       c.y, c.w, c.attributes, c.in)) < 2e-6);
  }
}

TEST_CASE("the adjoint of a convolution in its weights") {
  for (const Convolution& c : kConvolutions) {
    CAPTURE(c.name);
    CHECK(worst_difference(fmt::format("graph g(%x: f32[{}], %y: f32[{}]) {{\n  %0 = conv_weight_grad(%x, %y) {{{}, "
                                       "kernel=[{}]}}\n  return w=%0\n}}\n",
                                       c.x, c.y, c.attributes, c.kernel)) < 2e-6);
  }
}

TEST_CASE("convolutions whose weights are an input") {
  for (const Convolution& c : kConvolutions) {
    CAPTURE(c.name);
    CHECK(worst_difference(fmt::format("graph g(%x: f32[{}], %w: f32[{}]) {{\n  %0 = conv(%x, %w) {{{}}}\n  return y=%0\n}}\n",
                                       c.x, c.w, c.attributes)) < 2e-6);
  }
}

TEST_CASE("gradients of pooling") {
  const std::string windows = "kernel=[3, 3], strides=[2, 2], dilations=[1, 1], pads=[1, 1, 1, 1], ceil_mode=0";
  CHECK(worst_difference("graph g(%x: f32[N, 5, 13, 8], %d: f32[N, 5, 7, 4]) {\n  %0 = max_pool_index(%x) {" + windows +
                         "}\n  %1 = max_pool_grad(%0, %d) {" + windows + ", input_shape=(13, 8)}\n  return i=%0, y=%1\n}\n") <
        1e-6);
  for (const char* counted : {"0", "1"}) {
    CHECK(worst_difference("graph g(%d: f32[N, 5, 7, 4]) {\n  %0 = avg_pool_grad(%d) {" + windows +
                           ", input_shape=(13, 8), count_include_pad=" + counted + "}\n  return y=%0\n}\n") < 1e-6);
  }
}

TEST_CASE("gradients of pooling whose windows are as many as there are elements") {
  const std::string windows = "kernel=[3, 2], strides=[1, 1], dilations=[1, 1], pads=[1, 0, 1, 1], ceil_mode=0";
  for (const char* counted : {"0", "1"}) {
    CHECK(worst_difference("graph g(%d: f32[N, 2, 5, 4]) {\n  %0 = avg_pool_grad(%d) {" + windows +
                           ", input_shape=(5, 4), count_include_pad=" + counted + "}\n  return y=%0\n}\n") < 1e-6);
  }
}

TEST_CASE("the gradient of gather, and moments") {
  CHECK(worst_difference("graph g(%i: i64[N, 7], %u: f32[N, 7, 19]) {\n  %0 = scatter_add(%i, %u) {axis=0, size=(5)}\n"
                         "  return y=%0\n}\n",
                         3) < 1e-6);
  CHECK(worst_difference("graph g(%i: i32[6], %u: f32[3, 6, 5]) {\n  %0 = scatter_add(%i, %u) {axis=1, size=(4)}\n"
                         "  return y=%0\n}\n") < 1e-6);
  CHECK(worst_difference("graph g(%x: f32[N, 17, 5, 3]) {\n  %0, %1 = moments(%x) {axes=[0, 2, 3]}\n  return m=%0, v=%1\n}\n") <
        1e-6);
}

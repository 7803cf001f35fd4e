#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("expand goes behind arithmetic") {
  becomes(sink_movement, R"(
    graph g(%mask: f32[1, T]) {
      %0 = expand(%mask) {shape=(T, T)}
      %1 = exp(%0)
      return y=%1
    })",
          R"(
    symbol T
    graph g(%mask: f32[1, T]) {
      %0 = exp(%mask) : f32[1, T]
      %1 = expand(%0) {shape=(T, T)} : f32[T, T]
      return y=%1
    }
    )");
}

TEST_CASE("two expands along different axes become broadcasting") {
  becomes(sink_movement, R"(
    graph g(%a: f32[T, 1], %b: f32[1, T]) {
      %0 = expand(%a) {shape=(T, T)}
      %1 = expand(%b) {shape=(T, T)}
      %2 = add(%0, %1)
      return y=%2
    })",
          R"(
    symbol T
    graph g(%a: f32[T, 1], %b: f32[1, T]) {
      %0 = add(%a, %b) : f32[T, T]
      return y=%0
    }
    )");
}

TEST_CASE("reshape goes behind arithmetic with an operand along the axes it keeps") {
  becomes(sink_movement, R"(
    graph g(%x: f32[6, 4], %b: f32[4]) {
      %0 = reshape(%x) {shape=(2, 3, 4)}
      %1 = add(%0, %b)
      %2 = relu(%1)
      return y=%2
    })",
          R"(
    graph g(%x: f32[6, 4], %b: f32[4]) {
      %0 = add(%x, %b) : f32[6, 4]
      %1 = relu(%0) : f32[6, 4]
      %2 = reshape(%1) {shape=(2, 3, 4)} : f32[2, 3, 4]
      return y=%2
    }
    )");
}

TEST_CASE("equal transposes of both operands become one behind") {
  becomes(sink_movement, R"(
    graph g(%x: f32[N, T, 4], %y: f32[N, T, 4]) {
      %0 = transpose(%x) {perm=[1, 0, 2]}
      %1 = transpose(%y) {perm=[1, 0, 2]}
      %2 = mul(%0, %1)
      return y=%2
    })",
          R"(
    symbol N
    symbol T
    graph g(%x: f32[N, T, 4], %y: f32[N, T, 4]) {
      %0 = mul(%x, %y) : f32[N, T, 4]
      %1 = transpose(%0) {perm=[1, 0, 2]} : f32[T, N, 4]
      return y=%1
    }
    )");
}

TEST_CASE("transpose goes behind a softmax over the axis it keeps") {
  becomes(sink_movement, R"(
    graph g(%x: f32[N, T, 4]) {
      %0 = transpose(%x) {perm=[1, 0, 2]}
      %1 = softmax(%0) {axis=2}
      return y=%1
    })",
          R"(
    symbol N
    symbol T
    graph g(%x: f32[N, T, 4]) {
      %0 = softmax(%x) {axis=2} : f32[N, T, 4]
      %1 = transpose(%0) {perm=[1, 0, 2]} : f32[T, N, 4]
      return y=%1
    }
    )");
}

TEST_CASE("reshape goes behind a layer norm, whose axis is renumbered") {
  becomes(sink_movement, R"(
    graph g(%x: f32[6, 4], %scale: f32[4]) {
      %0 = reshape(%x) {shape=(2, 3, 4)}
      %1 = layer_norm(%0, %scale) {axis=2, epsilon=1e-05}
      return y=%1
    })",
          R"(
    graph g(%x: f32[6, 4], %scale: f32[4]) {
      %0 = layer_norm(%x, %scale) {axis=1, epsilon=1e-05} : f32[6, 4]
      %1 = reshape(%0) {shape=(2, 3, 4)} : f32[2, 3, 4]
      return y=%1
    }
    )");
}

TEST_CASE("a matrix product keeps its rows as they are stored") {
  becomes(sink_movement, R"(
    graph g(%x: f32[N, T, 4], %w: f32[4, 3]) {
      %0 = transpose(%x) {perm=[1, 0, 2]}
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0}
      return y=%1
    })",
          R"(
    symbol N
    symbol T
    graph g(%x: f32[N, T, 4], %w: f32[4, 3]) {
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0} : f32[N, T, 3]
      %1 = transpose(%0) {perm=[1, 0, 2]} : f32[T, N, 3]
      return y=%1
    }
    )");
}

TEST_CASE("reshape in front of an operand of other axes stays") {
  stays(sink_movement, R"(
    graph g(%x: f32[6, 4], %b: f32[3, 4]) {
      %0 = reshape(%x) {shape=(2, 3, 4)}
      %1 = add(%0, %b)
      return y=%1
    })");
}

TEST_CASE("different transposes of the operands stay") {
  stays(sink_movement, R"(
    graph g(%x: f32[2, 2, 4], %y: f32[2, 4, 2]) {
      %0 = transpose(%x) {perm=[1, 0, 2]}
      %1 = transpose(%y) {perm=[2, 0, 1]}
      %2 = mul(%0, %1)
      return y=%2
    })");
}

TEST_CASE("a softmax over an axis that moved stays behind the transpose") {
  stays(sink_movement, R"(
    graph g(%x: f32[N, T, 4]) {
      %0 = transpose(%x) {perm=[1, 0, 2]}
      %1 = softmax(%0) {axis=1}
      %2 = transpose(%x) {perm=[0, 2, 1]}
      %3 = softmax(%2) {axis=2}
      return y=%1, z=%3
    })");
}

TEST_CASE("a matrix product of batches keeps the transpose of its operand") {
  stays(sink_movement, R"(
    graph g(%x: f32[N, T, 4], %w: f32[T, 4, 3]) {
      %0 = transpose(%x) {perm=[1, 0, 2]}
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0}
      return y=%1
    })");
}

TEST_CASE("slices and padding stay in front of arithmetic") {
  stays(sink_movement, R"(
    graph g(%x: f32[N, 4]) {
      %0 = slice(%x) {starts=(0, 1), sizes=(N, 2), steps=[1, 1]}
      %1 = exp(%0)
      %2 = pad(%x) {before=(0, 1), after=(0, 1), value=0.0, mode="constant"}
      %3 = exp(%2)
      return y=%1, z=%3
    })");
}

TEST_CASE("movement in front of a reduction stays") {
  stays(sink_movement, R"(
    graph g(%x: f32[N, T, 4]) {
      %0 = transpose(%x) {perm=[1, 0, 2]}
      %1 = reduce_sum(%0) {axes=[2], keepdims=1}
      return y=%1
    })");
}

#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("scale and shift per channel go into weights and bias of the convolution") {
  becomes(fold_batchnorm, R"(
    graph g(%x: f32[N, 1, 4, 4]) {
      %w = constant f32[2, 1, 1, 1] [3, 5]
      %b = constant f32[2] [1, 2]
      %scale = constant f32[2, 1, 1] [10, 0.5]
      %shift = constant f32[2, 1, 1] [7, -1]
      %0 = conv(%x, %w, %b) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}  // conv1
      %1 = fma(%0, %scale, %shift)  // bn1
      %2 = relu(%1)
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 1, 4, 4]) {
      %w = constant f32[2, 1, 1, 1] [30, 2.5]  // bn1
      %b = constant f32[2] [17, 0]  // bn1
      %0 = conv(%x, %w, %b) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]} : f32[N, 2, 4, 4]  // conv1+bn1
      %1 = relu(%0) : f32[N, 2, 4, 4]
      return y=%1
    }
    )");
}

TEST_CASE("a shift alone becomes a bias and keeps the weights") {
  becomes(fold_batchnorm, R"(
    graph g(%x: f32[1, 1, 4]) {
      %w = constant f32[2, 1, 3] [1, 2, 3, 4, 5, 6]
      %shift = constant f32[1, 2, 1] [7, -1]
      %0 = conv(%x, %w) {dilations=[1], group=1, pads=[1, 1], strides=[1]}
      %1 = add(%shift, %0)
      return y=%1
    })",
          R"(
    graph g(%x: f32[1, 1, 4]) {
      %w = constant f32[2, 1, 3] [1, 2, 3, 4, 5, 6]
      %0 = constant f32[2] [7, -1]
      %1 = conv(%x, %w, %0) {dilations=[1], group=1, pads=[1, 1], strides=[1]} : f32[1, 2, 4]
      return y=%1
    }
    )");
}

TEST_CASE("a scale goes into the weights of a depthwise convolution") {
  becomes(fold_batchnorm, R"(
    graph g(%x: f32[1, 2, 5]) {
      %w = constant f32[2, 1, 2] [1, 2, 3, 4]
      %scale = constant f32[2, 1] [10, 100]
      %0 = conv(%x, %w) {dilations=[1], group=2, pads=[0, 0], strides=[2]}
      %1 = mul(%0, %scale)
      return y=%1
    })",
          R"(
    graph g(%x: f32[1, 2, 5]) {
      %w = constant f32[2, 1, 2] [10, 20, 300, 400]
      %0 = conv(%x, %w) {dilations=[1], group=2, pads=[0, 0], strides=[2]} : f32[1, 2, 2]
      return y=%0
    }
    )");
}

TEST_CASE("a scale per column goes into the weights of a matrix product") {
  becomes(fold_batchnorm, R"(
    graph g(%x: f32[N, T, 2]) {
      %w = constant f32[3, 2] [1, 2, 3, 4, 5, 6]
      %scale = constant f32[3] [1, 10, 100]
      %0 = matmul(%x, %w) {trans_a=0, trans_b=1}
      %1 = mul(%0, %scale)
      return y=%1
    })",
          R"(
    symbol N
    symbol T
    graph g(%x: f32[N, T, 2]) {
      %w = constant f32[3, 2] [1, 2, 30, 40, 500, 600]
      %0 = matmul(%x, %w) {trans_a=0, trans_b=1} : f32[N, T, 3]
      return y=%0
    }
    )");
}

TEST_CASE("a convolution that is also used elsewhere keeps its weights") {
  stays(fold_batchnorm, R"(
    graph g(%x: f32[1, 1, 4]) {
      %w = constant f32[2, 1, 1] [3, 5]
      %scale = constant f32[2, 1] [10, 0.5]
      %0 = conv(%x, %w) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
      %1 = mul(%0, %scale)
      %2 = relu(%0)
      %3 = conv(%x, %w) {dilations=[1], group=1, pads=[1, 1], strides=[1]}
      %4 = mul(%3, %scale)
      return y=%1, z=%2, v=%3, w=%4
    })");
}

TEST_CASE("a scale that varies within a channel stays") {
  stays(fold_batchnorm, R"(
    graph g(%x: f32[1, 1, 2]) {
      %w = constant f32[2, 1, 1] [3, 5]
      %scale = constant f32[2] [10, 0.5]
      %0 = conv(%x, %w) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
      %1 = mul(%0, %scale)
      return y=%1
    })");
}

TEST_CASE("weights, bias and scale that are no constants stay") {
  stays(fold_batchnorm, R"(
    graph g(%x: f32[1, 1, 4], %v: f32[2, 1, 1], %b: f32[2], %s: f32[2, 1]) {
      %w = constant f32[2, 1, 1] [3, 5]
      %scale = constant f32[2, 1] [10, 0.5]
      %0 = conv(%x, %v) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
      %1 = mul(%0, %scale)
      %2 = conv(%x, %w, %b) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
      %3 = mul(%2, %scale)
      %4 = conv(%x, %w) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
      %5 = mul(%4, %s)
      return a=%1, b=%3, c=%5
    })");
}

TEST_CASE("weights of half precision stay") {
  stays(fold_batchnorm, R"(
    graph g(%x: f16[1, 1, 4]) {
      %w = constant f16[2, 1, 1] [3, 5]
      %scale = constant f16[2, 1] [10, 0.5]
      %0 = conv(%x, %w) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
      %1 = mul(%0, %scale)
      return y=%1
    })");
}

TEST_CASE("one factor for a whole matrix product, shifts and batched weights stay") {
  stays(fold_batchnorm, R"(
    graph g(%x: f32[N, 2], %z: f32[N, 2, 2]) {
      %w = constant f32[2, 3] [1, 2, 3, 4, 5, 6]
      %v = constant f32[1, 2, 2] [1, 2, 3, 4]
      %eighth = constant f32[] 0.125
      %columns = constant f32[3] [1, 10, 100]
      %two = constant f32[2] [1, 10]
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = mul(%0, %eighth)
      %2 = add(%1, %columns)
      %3 = matmul(%z, %v) {trans_a=0, trans_b=0}
      %4 = mul(%3, %two)
      return a=%2, b=%4
    })");
}

TEST_CASE("a scale that widens the result stays") {
  stays(fold_batchnorm, R"(
    graph g(%x: f32[1, 1, 4]) {
      %w = constant f32[2, 1, 1] [3, 5]
      %scale = constant f32[3, 1, 1] [10, 0.5, 1]
      %0 = conv(%x, %w) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
      %1 = mul(%0, %scale)
      return y=%1
    })");
}

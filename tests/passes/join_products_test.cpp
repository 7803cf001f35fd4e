#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("products of one operand with biases become one, of which each takes a slice") {
  becomes(join_products, R"(
    graph g(%x: f32[N, 2]) {
      %w = constant f32[2, 4] [1, 2, 3, 4, 5, 6, 7, 8]
      %v = constant f32[2, 8] splat 2
      %b = constant f32[4] [1, 2, 3, 4]
      %c = constant f32[1, 8] splat 3
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = add(%0, %b)
      %2 = matmul(%x, %v) {trans_a=0, trans_b=0}
      %3 = add(%2, %c)
      return y=%1, z=%3
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 2]) {
      %0 = constant f32[2, 12] [1, 2, 3, 4, 2, 2, 2, 2, 2, 2, 2, 2, 5, 6, 7, 8, 2, 2, 2, 2, 2, 2, 2, 2]
      %1 = matmul(%x, %0) {trans_a=0, trans_b=0} : f32[N, 12]
      %2 = constant f32[12] [1, 2, 3, 4, 3, 3, 3, 3, 3, 3, 3, 3]
      %3 = add(%1, %2) : f32[N, 12]
      %4 = slice(%3) {sizes=(N, 4), starts=(0, 0), steps=[1, 1]} : f32[N, 4]
      %5 = slice(%3) {sizes=(N, 8), starts=(0, 4), steps=[1, 1]} : f32[N, 8]
      return y=%4, z=%5
    }
    )");
}

TEST_CASE("transposed weights without biases are joined too") {
  becomes(join_products, R"(
    graph g(%x: f32[3, N, 2]) {
      %w = constant f32[4, 2] [1, 2, 3, 4, 5, 6, 7, 8]
      %v = constant f32[4, 2] splat 2
      %0 = matmul(%x, %w) {trans_a=0, trans_b=1}
      %1 = matmul(%x, %v) {trans_a=0, trans_b=1}
      %2 = mul(%0, %1)
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[3, N, 2]) {
      %0 = constant f32[8, 2] [1, 2, 3, 4, 5, 6, 7, 8, 2, 2, 2, 2, 2, 2, 2, 2]
      %1 = matmul(%x, %0) {trans_a=0, trans_b=1} : f32[3, N, 8]
      %2 = slice(%1) {sizes=(3, N, 4), starts=(0, 0, 0), steps=[1, 1, 1]} : f32[3, N, 4]
      %3 = slice(%1) {sizes=(3, N, 4), starts=(0, 0, 4), steps=[1, 1, 1]} : f32[3, N, 4]
      %4 = mul(%2, %3) : f32[3, N, 4]
      return y=%4
    }
    )");
}

TEST_CASE("a product with a bias and one without stay apart") {
  stays(join_products, R"(
    graph g(%x: f32[N, 2]) {
      %w = constant f32[2, 4] splat 1
      %v = constant f32[2, 4] splat 2
      %b = constant f32[4] [1, 2, 3, 4]
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = add(%0, %b)
      %2 = matmul(%x, %v) {trans_a=0, trans_b=0}
      return y=%1, z=%2
    })");
}

TEST_CASE("weights that are computed, lie differently, or have columns that are no vectors stay apart") {
  stays(join_products, R"(
    graph g(%x: f32[4, 4], %u: f32[4, 4]) {
      %w = constant f32[4, 4] splat 1
      %v = constant f32[4, 3] splat 2
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = matmul(%x, %w) {trans_a=0, trans_b=1}
      %2 = matmul(%x, %w) {trans_a=1, trans_b=0}
      %3 = matmul(%x, %u) {trans_a=0, trans_b=0}
      %4 = matmul(%x, %v) {trans_a=0, trans_b=0}
      return a=%0, b=%1, c=%2, d=%3, e=%4
    })");
}

TEST_CASE("products of different operands, or with the operand on the right, stay apart") {
  stays(join_products, R"(
    graph g(%x: f32[4, 4], %z: f32[4, 4]) {
      %w = constant f32[4, 4] splat 1
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = matmul(%z, %w) {trans_a=0, trans_b=0}
      %2 = matmul(%w, %x) {trans_a=0, trans_b=0}
      return a=%0, b=%1, c=%2
    })");
}

TEST_CASE("a sum that is no bias stays behind its slice") {
  becomes(join_products, R"(
    graph g(%x: f32[N, 2], %r: f32[N, 4]) {
      %w = constant f32[2, 4] splat 1
      %v = constant f32[2, 4] splat 2
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = add(%0, %r)
      %2 = matmul(%x, %v) {trans_a=0, trans_b=0}
      return y=%1, z=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 2], %r: f32[N, 4]) {
      %0 = constant f32[2, 8] [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2]
      %1 = matmul(%x, %0) {trans_a=0, trans_b=0} : f32[N, 8]
      %2 = slice(%1) {sizes=(N, 4), starts=(0, 0), steps=[1, 1]} : f32[N, 4]
      %3 = slice(%1) {sizes=(N, 4), starts=(0, 4), steps=[1, 1]} : f32[N, 4]
      %4 = add(%2, %r) : f32[N, 4]
      return y=%4, z=%3
    }
    )");
}

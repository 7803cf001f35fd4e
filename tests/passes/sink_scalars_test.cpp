#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("a factor of an operand becomes one of the product") {
  becomes(sink_scalars, R"(
    graph g(%a: f32[N, 4], %b: f32[4, 3]) {
      %c = constant f32[] 0.5
      %0 = mul(%b, %c)
      %1 = matmul(%a, %0) {trans_a=0, trans_b=0}
      return y=%1
    })",
          R"(
    symbol N
    graph g(%a: f32[N, 4], %b: f32[4, 3]) {
      %0 = matmul(%a, %b) {trans_a=0, trans_b=0} : f32[N, 3]
      %1 = constant f32[] 0.5
      %2 = mul(%0, %1) : f32[N, 3]
      return y=%2
    }
    )");
}

TEST_CASE("factors of both operands come out through transposes and reshapes") {
  becomes(sink_scalars, R"(
    graph g(%q: f32[N, T, 8], %k: f32[N, T, 8]) {
      %c = constant f32[] 0.25
      %0 = mul(%q, %c)
      %1 = reshape(%0) {shape=(N, T, 2, 4)}
      %2 = transpose(%1) {perm=[0, 2, 1, 3]}
      %3 = mul(%k, %c)
      %4 = reshape(%3) {shape=(N, T, 2, 4)}
      %5 = transpose(%4) {perm=[0, 2, 1, 3]}
      %6 = matmul(%2, %5) {trans_a=0, trans_b=1}
      return y=%6
    })",
          R"(
    symbol N
    symbol T
    graph g(%q: f32[N, T, 8], %k: f32[N, T, 8]) {
      %0 = reshape(%q) {shape=(N, T, 2, 4)} : f32[N, T, 2, 4]
      %1 = transpose(%0) {perm=[0, 2, 1, 3]} : f32[N, 2, T, 4]
      %2 = reshape(%k) {shape=(N, T, 2, 4)} : f32[N, T, 2, 4]
      %3 = transpose(%2) {perm=[0, 2, 1, 3]} : f32[N, 2, T, 4]
      %4 = matmul(%1, %3) {trans_a=0, trans_b=1} : f32[N, 2, T, T]
      %5 = constant f32[] 0.25
      %6 = mul(%4, %5) : f32[N, 2, T, T]
      %7 = constant f32[] 0.25
      %8 = mul(%6, %7) : f32[N, 2, T, T]
      return y=%8
    }
    )");
}

TEST_CASE("a tensor of equal elements is a factor") {
  becomes(sink_scalars, R"(
    graph g(%a: f32[2, 4], %b: f32[4, 3]) {
      %c = constant f32[2, 4] splat 3
      %0 = mul(%a, %c)
      %1 = matmul(%0, %b) {trans_a=0, trans_b=0}
      return y=%1
    })",
          R"(
    graph g(%a: f32[2, 4], %b: f32[4, 3]) {
      %0 = matmul(%a, %b) {trans_a=0, trans_b=0} : f32[2, 3]
      %1 = constant f32[] 3
      %2 = mul(%0, %1) : f32[2, 3]
      return y=%2
    }
    )");
}

TEST_CASE("a scaled operand that is also used elsewhere stays") {
  stays(sink_scalars, R"(
    graph g(%a: f32[N, 4], %b: f32[4, 3]) {
      %c = constant f32[] 0.5
      %0 = mul(%a, %c)
      %1 = matmul(%0, %b) {trans_a=0, trans_b=0}
      return y=%1, z=%0
    })");
}

TEST_CASE("factors that differ, or are no constants, stay") {
  stays(sink_scalars, R"(
    graph g(%a: f32[N, 4], %b: f32[4, 3], %s: f32[]) {
      %c = constant f32[4] [1, 2, 3, 4]
      %0 = mul(%a, %c)
      %1 = mul(%b, %s)
      %2 = matmul(%0, %1) {trans_a=0, trans_b=0}
      return y=%2
    })");
}

TEST_CASE("factors near the ends of the range stay where they are") {
  stays(sink_scalars, R"(
    graph g(%a: f32[N, 4], %b: f32[4, 3]) {
      %huge = constant f32[] 1e+10
      %tiny = constant f32[] 1e-11
      %0 = mul(%a, %huge)
      %1 = mul(%b, %tiny)
      %2 = matmul(%0, %1) {trans_a=0, trans_b=0}
      return y=%2
    })");
}

TEST_CASE("summands and factors of half precision stay") {
  stays(sink_scalars, R"(
    graph g(%a: f32[N, 4], %b: f32[4, 3], %h: f16[N, 4], %i: f16[4, 3]) {
      %c = constant f32[] 0.5
      %d = constant f16[] 0.5
      %0 = add(%a, %c)
      %1 = matmul(%0, %b) {trans_a=0, trans_b=0}
      %2 = mul(%h, %d)
      %3 = matmul(%2, %i) {trans_a=0, trans_b=0}
      return y=%1, z=%3
    })");
}

TEST_CASE("a scale that repeats its operand stays") {
  stays(sink_scalars, R"(
    graph g(%a: f32[1, 4], %b: f32[4, 3]) {
      %c = constant f32[2, 4] splat 0.5
      %0 = mul(%a, %c)
      %1 = matmul(%0, %b) {trans_a=0, trans_b=0}
      return y=%1
    })");
}

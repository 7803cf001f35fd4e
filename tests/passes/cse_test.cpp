#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("equal nodes with equal operands become one") {
  becomes(cse, R"(
    graph g(%x: f32[N, 4]) {
      %0 = exp(%x)
      %1 = exp(%x)
      %2 = add(%0, %1)
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 4]) {
      %0 = exp(%x) : f32[N, 4]
      %1 = add(%0, %0) : f32[N, 4]
      return y=%1
    }
    )");
}

TEST_CASE("equal chains collapse from the top in one run") {
  becomes(cse, R"(
    graph g(%x: f32[4, 6]) {
      %0 = transpose(%x) {perm=[1, 0]}
      %1 = reduce_sum(%0) {axes=[0], keepdims=1}
      %2 = transpose(%x) {perm=[1, 0]}
      %3 = reduce_sum(%2) {axes=[0], keepdims=1}
      return y=%1, z=%3
    })",
          R"(
    graph g(%x: f32[4, 6]) {
      %0 = transpose(%x) {perm=[1, 0]} : f32[6, 4]
      %1 = reduce_sum(%0) {axes=[0], keepdims=1} : f32[1, 4]
      return y=%1, z=%1
    }
    )");
}

TEST_CASE("commutative operands may be swapped") {
  becomes(cse, R"(
    graph g(%a: f32[3], %b: f32[3]) {
      %0 = mul(%a, %b)
      %1 = mul(%b, %a)
      %2 = sub(%0, %1)
      return y=%2
    })",
          R"(
    graph g(%a: f32[3], %b: f32[3]) {
      %0 = mul(%a, %b) : f32[3]
      %1 = sub(%0, %0) : f32[3]
      return y=%1
    }
    )");
}

TEST_CASE("small constants of equal bytes become one") {
  becomes(cse, R"(
    graph g(%x: f32[2]) {
      %a = constant f32[] 0.5
      %b = constant f32[] 0.5
      %0 = add(%x, %a)
      %1 = mul(%0, %b)
      return y=%1
    })",
          R"(
    graph g(%x: f32[2]) {
      %a = constant f32[] 0.5
      %0 = add(%x, %a) : f32[2]
      %1 = mul(%0, %a) : f32[2]
      return y=%1
    }
    )");
}

TEST_CASE("operands of a difference may not be swapped") {
  stays(cse, R"(
    graph g(%a: f32[3], %b: f32[3]) {
      %0 = sub(%a, %b)
      %1 = sub(%b, %a)
      %2 = mul(%0, %1)
      return y=%2
    })");
}

TEST_CASE("equal operands with other attributes stay apart") {
  stays(cse, R"(
    graph g(%x: f32[4, 4]) {
      %0 = reduce_max(%x) {axes=[0], keepdims=1}
      %1 = reduce_max(%x) {axes=[1], keepdims=1}
      %2 = softmax(%x) {axis=0}
      %3 = softmax(%x) {axis=1}
      return a=%0, b=%1, c=%2, d=%3
    })");
}

TEST_CASE("casts of one value to two types stay apart") {
  stays(cse, R"(
    graph g(%x: i32[4]) {
      %0 = cast(%x) {dtype=f32}
      %1 = cast(%x) {dtype=f16}
      return y=%0, z=%1
    })");
}

TEST_CASE("constants that differ in sign of zero or in type stay apart") {
  stays(cse, R"(
    graph g(%x: f32[2], %n: i32[2]) {
      %a = constant f32[] 0
      %b = constant f32[] -0
      %c = constant i32[] 0
      %0 = div(%x, %a)
      %1 = div(%x, %b)
      %2 = add(%n, %c)
      return y=%0, z=%1, n=%2
    })");
}

TEST_CASE("large constants are not compared byte by byte") {
  stays(cse, R"(
    graph g(%x: f32[2048]) {
      %a = constant f32[2048] splat 2
      %b = constant f32[2048] splat 2
      %0 = add(%x, %a)
      %1 = mul(%x, %b)
      return y=%0, z=%1
    })");
}

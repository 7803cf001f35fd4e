#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("what reaches no output goes, with all that only it used") {
  becomes(dce, R"(
    graph g(%x: f32[N, 4]) {
      %w = constant f32[4] [1, 2, 3, 4]
      %0 = mul(%x, %w)
      %1 = exp(%0)
      %2 = relu(%x)
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 4]) {
      %0 = relu(%x) : f32[N, 4]
      return y=%0
    }
    )");
}

TEST_CASE("inputs that nothing uses stay in the signature") {
  becomes(dce, R"(
    graph g(%x: f32[4], %unused: i64[N]) {
      %0 = neg(%unused)
      return y=%x
    })",
          R"(
    symbol N
    graph g(%x: f32[4], %unused: i64[N]) {
      return y=%x
    }
    )");
}

TEST_CASE("a node of which one result is used stays whole") {
  stays(dce, R"(
    symbol T
    axis t < T
    graph g(%h: f32[4], %x: f32[T, 4]) {
      %0, %1 = loop(%h, %x) {carried=1, counter="t", trip=(T)} : f32[4], f32[T, 4]
        body step(%h: f32[4], %x: f32[T, 4]) {
          %0 = slice(%x) {sizes=(1, 4), starts=(t, 0), steps=[1, 1]} : f32[1, 4]
          %1 = reshape(%0) {shape=(4)} : f32[4]
          %2 = add(%h, %1) : f32[4]
          return next=%2, result=%2
        }
      return all=%1
    })");
}

TEST_CASE("what an output reaches only through another output stays") {
  stays(dce, R"(
    graph g(%x: f32[4]) {
      %0 = exp(%x)
      %1 = neg(%0)
      return a=%0, b=%1
    })");
}

TEST_CASE("a value that is used twice stays when one of its users is all that is alive") {
  becomes(dce, R"(
    graph g(%x: f32[4]) {
      %0 = exp(%x)
      %1 = neg(%0)
      %2 = abs(%0)
      return y=%2
    })",
          R"(
    graph g(%x: f32[4]) {
      %0 = exp(%x) : f32[4]
      %1 = abs(%0) : f32[4]
      return y=%1
    }
    )");
}

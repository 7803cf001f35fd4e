#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("shape arithmetic becomes one list of expressions") {
  becomes(fold_shapes, R"(
    graph g(%x: i64[2], %s: f32[N, T]) {
      %n = exprs() {values=(N), shape=[1], dtype=i64}
      %t = exprs() {values=(T), shape=[1], dtype=i64}
      %two = constant i64[1] [2]
      %0 = mul(%t, %two)
      %1 = concat(%n, %0) {axis=0}
      %2 = add(%x, %1)
      return y=%2
    })",
          R"(
    symbol N
    symbol T
    graph g(%x: i64[2], %s: f32[N, T]) {
      %0 = exprs() {dtype=i64, shape=[2], values=(N, 2*T)} : i64[2]
      %1 = add(%x, %0) : i64[2]
      return y=%1
    }
    )");
}

TEST_CASE("sizes that are known become a constant") {
  becomes(fold_shapes, R"(
    graph g(%x: i64[2], %s: f32[N]) {
      %0 = exprs() {values=(N, 8), shape=[2], dtype=i64}
      %at = constant i64[] 1
      %1 = gather(%0, %at) {axis=0}
      %2 = add(%x, %1)
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: i64[2], %s: f32[N]) {
      %0 = constant i64[] 8
      %1 = add(%x, %0) : i64[2]
      return y=%1
    }
    )");
}

TEST_CASE("expressions that turn out to be numbers become a constant") {
  becomes(fold_shapes, R"(
    graph g(%x: i64[2], %s: f32[N]) {
      %0 = exprs() {values=(3, N - N + 4), shape=[2], dtype=i64}
      %1 = add(%x, %0)
      return y=%1
    })",
          R"(
    symbol N
    graph g(%x: i64[2], %s: f32[N]) {
      %0 = constant i64[2] [3, 4]
      %1 = add(%x, %0) : i64[2]
      return y=%1
    }
    )");
}

TEST_CASE("the size that a test decides is chosen") {
  becomes(fold_shapes, R"(
    symbol N >= 1
    graph g(%x: i64[1], %s: f32[N]) {
      %n = exprs() {values=(N), shape=[1], dtype=i64}
      %minus = constant i64[1] [-1]
      %zero = constant i64[1] [0]
      %0 = equal(%n, %minus)
      %1 = where(%0, %zero, %n)
      %2 = add(%x, %1)
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: i64[1], %s: f32[N]) {
      %0 = exprs() {dtype=i64, shape=[1], values=(N)} : i64[1]
      %1 = add(%x, %0) : i64[1]
      return y=%1
    }
    )");
}

TEST_CASE("ranges stay") {
  stays(fold_shapes, R"(
    graph g(%x: i64[4]) {
      %0 = iota() {shape=(4), axis=0, dtype=i64, start=(0), step=(1)}
      %1 = add(%x, %0)
      return y=%1
    })");
}

TEST_CASE("arithmetic of shapes in floats stays") {
  stays(fold_shapes, R"(
    graph g(%x: f32[1], %s: f32[N]) {
      %n = exprs() {values=(N), shape=[1], dtype=i64}
      %0 = cast(%n) {dtype=f32}
      %1 = sqrt(%0)
      %2 = div(%x, %1)
      return y=%2
    })");
}

TEST_CASE("integers of symbolic shape stay") {
  stays(fold_shapes, R"(
    graph g(%x: i64[N]) {
      %one = constant i64[] 1
      %0 = expand(%one) {shape=(N)}
      %1 = add(%x, %0)
      return y=%1
    })");
}

TEST_CASE("arithmetic on inputs stays") {
  stays(fold_shapes, R"(
    graph g(%x: i64[2]) {
      %a = constant i64[2] [1, 2]
      %0 = add(%x, %a)
      %1 = mul(%0, %a)
      return y=%1
    })");
}

#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("gather at one known position is a slice") {
  becomes(simplify_indexing, R"(
    graph g(%x: f32[N, 5, 4]) {
      %at = constant i64[] 2
      %0 = gather(%x, %at) {axis=1}
      return y=%0
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 5, 4]) {
      %0 = slice(%x) {sizes=(N, 1, 4), starts=(0, 2, 0), steps=[1, 1, 1]} : f32[N, 1, 4]
      %1 = reshape(%0) {shape=(N, 4)} : f32[N, 4]
      return y=%1
    }
    )");
}

TEST_CASE("gather at positions in steps is a slice in steps") {
  becomes(simplify_indexing, R"(
    graph g(%x: f32[N, 8]) {
      %at = constant i64[3] [6, 4, 2]
      %0 = gather(%x, %at) {axis=1}
      return y=%0
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 8]) {
      %0 = slice(%x) {sizes=(N, 3), starts=(0, 6), steps=[1, -2]} : f32[N, 3]
      return y=%0
    }
    )");
}

TEST_CASE("negative positions count from the end") {
  becomes(simplify_indexing, R"(
    graph g(%x: f32[T, 4]) {
      %at = constant i64[] -1
      %0 = gather(%x, %at) {axis=0}
      return y=%0
    })",
          R"(
    symbol T
    graph g(%x: f32[T, 4]) {
      %0 = slice(%x) {sizes=(1, 4), starts=(T - 1, 0), steps=[1, 1]} : f32[1, 4]
      %1 = reshape(%0) {shape=(4)} : f32[4]
      return y=%1
    }
    )");
}

TEST_CASE("gather at a range of symbolic length is a slice") {
  becomes(simplify_indexing, R"(
    symbol T in [1, 16]
    graph g(%table: f32[16, 4], %x: f32[T, 4]) {
      %at = iota() {shape=(T), axis=0, dtype=i64, start=(0), step=(1)}
      %0 = gather(%table, %at) {axis=0}
      %1 = add(%x, %0)
      return y=%1
    })",
          R"(
    symbol T in [1, 16]
    graph g(%table: f32[16, 4], %x: f32[T, 4]) {
      %0 = slice(%table) {sizes=(T, 4), starts=(0, 0), steps=[1, 1]} : f32[T, 4]
      %1 = add(%x, %0) : f32[T, 4]
      return y=%1
    }
    )");
}

TEST_CASE("positions that repeat along an axis are a slice, expanded") {
  becomes(simplify_indexing, R"(
    graph g(%x: f32[8]) {
      %at = constant i64[2, 3] [4, 5, 6, 4, 5, 6]
      %0 = gather(%x, %at) {axis=0}
      return y=%0
    })",
          R"(
    graph g(%x: f32[8]) {
      %0 = slice(%x) {sizes=(3), starts=(4), steps=[1]} : f32[3]
      %1 = reshape(%0) {shape=(1, 3)} : f32[1, 3]
      %2 = expand(%1) {shape=(2, 3)} : f32[2, 3]
      return y=%2
    }
    )");
}

TEST_CASE("gather_nd along a row is a slice") {
  becomes(simplify_indexing, R"(
    graph g(%x: f32[4, 4, 2]) {
      %two = constant i64[] 2
      %row = expand(%two) {shape=(3, 1)}
      %column = iota() {shape=(3, 1), axis=0, dtype=i64, start=(1), step=(1)}
      %at = concat(%row, %column) {axis=1}
      %0 = gather_nd(%x, %at) {batch_dims=0}
      return y=%0
    })",
          R"(
    graph g(%x: f32[4, 4, 2]) {
      %0 = slice(%x) {sizes=(1, 3, 2), starts=(2, 1, 0), steps=[1, 1, 1]} : f32[1, 3, 2]
      %1 = reshape(%0) {shape=(3, 2)} : f32[3, 2]
      return y=%1
    }
    )");
}

TEST_CASE("gather_nd keeps positions of which it is not known whether they lie inside") {
  becomes(simplify_indexing, R"(
    graph g(%x: f32[4, T], %s: f32[N, S]) {
      %two = constant i64[] 2
      %row = expand(%two) {shape=(3, 1)}
      %column = iota() {shape=(3, 1), axis=0, dtype=i64, start=(1), step=(1)}
      %at = concat(%row, %column) {axis=1}
      %0 = gather_nd(%x, %at) {batch_dims=0}
      return y=%0
    })",
          R"(
    symbol N
    symbol S
    symbol T
    graph g(%x: f32[4, T], %s: f32[N, S]) {
      %0 = iota() {axis=0, dtype=i64, shape=(3), start=(1), step=(1)} : i64[3]
      %1 = gather(%x, %0) {axis=1} : f32[4, 3]
      %2 = slice(%1) {sizes=(1, 3), starts=(2, 0), steps=[1, 1]} : f32[1, 3]
      %3 = reshape(%2) {shape=(3)} : f32[3]
      return y=%3
    }
    )");
}

TEST_CASE("gather_nd along a diagonal stays") {
  stays(simplify_indexing, R"(
    graph g(%x: f32[4, 4, 2]) {
      %at = constant i64[4, 2] [0, 0, 1, 1, 2, 2, 3, 3]
      %0 = gather_nd(%x, %at) {batch_dims=0}
      return y=%0
    })");
}

TEST_CASE("gather_elements at one column is a slice") {
  becomes(simplify_indexing, R"(
    graph g(%x: f32[3, 5]) {
      %at = constant i64[3, 1] splat 4
      %0 = gather_elements(%x, %at) {axis=1}
      return y=%0
    })",
          R"(
    graph g(%x: f32[3, 5]) {
      %0 = slice(%x) {sizes=(3, 1), starts=(0, 4), steps=[1, 1]} : f32[3, 1]
      %1 = reshape(%0) {shape=(3)} : f32[3]
      %2 = reshape(%1) {shape=(3, 1)} : f32[3, 1]
      return y=%2
    }
    )");
}

TEST_CASE("positions that are data stay") {
  stays(simplify_indexing, R"(
    graph g(%table: f32[100, 8], %ids: i64[N, T]) {
      %0 = gather(%table, %ids) {axis=0}
      return y=%0
    })");
}

TEST_CASE("positions in no regular steps stay") {
  stays(simplify_indexing, R"(
    graph g(%x: f32[8, 2]) {
      %at = constant i64[3] [0, 1, 3]
      %0 = gather(%x, %at) {axis=0}
      return y=%0
    })");
}

TEST_CASE("positions of which some count from the end stay") {
  stays(simplify_indexing, R"(
    graph g(%x: f32[8]) {
      %at = constant i64[3] [-1, 0, 1]
      %0 = gather(%x, %at) {axis=0}
      return y=%0
    })");
}

TEST_CASE("a range that may pass the end of the data stays") {
  stays(simplify_indexing, R"(
    symbol T in [1, 17]
    graph g(%table: f32[16, 4], %x: f32[T, 4]) {
      %at = iota() {shape=(T), axis=0, dtype=i64, start=(0), step=(1)}
      %0 = gather(%table, %at) {axis=0}
      %1 = add(%x, %0)
      return y=%1
    })");
}

TEST_CASE("a position that may lie outside a symbolic axis stays") {
  stays(simplify_indexing, R"(
    graph g(%x: f32[T, 4]) {
      %at = constant i64[] 1
      %0 = gather(%x, %at) {axis=0}
      return y=%0
    })");
}

TEST_CASE("positions that depend on two axes stay") {
  stays(simplify_indexing, R"(
    graph g(%x: f32[8]) {
      %at = constant i64[2, 2] [0, 1, 4, 5]
      %0 = gather(%x, %at) {axis=0}
      return y=%0
    })");
}

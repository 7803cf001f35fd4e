#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("arithmetic on a range is a range") {
  becomes(fold_ramps, R"(
    graph g(%x: i64[T]) {
      %0 = iota() {shape=(T), axis=0, dtype=i64, start=(0), step=(1)}
      %two = constant i64[] 2
      %three = constant i64[] 3
      %1 = mul(%0, %two)
      %2 = sub(%1, %three)
      %3 = add(%x, %2)
      return y=%3
    })",
          R"(
    symbol T
    graph g(%x: i64[T]) {
      %0 = iota() {axis=0, dtype=i64, shape=(T), start=(-3), step=(2)} : i64[T]
      %1 = add(%x, %0) : i64[T]
      return y=%1
    }
    )");
}

TEST_CASE("differences of equal ranges are one number") {
  becomes(fold_ramps, R"(
    graph g(%x: i64[T]) {
      %0 = iota() {shape=(T), axis=0, dtype=i64, start=(5), step=(1)}
      %1 = iota() {shape=(T), axis=0, dtype=i64, start=(3), step=(1)}
      %2 = sub(%0, %1)
      %3 = mul(%x, %2)
      return y=%3
    })",
          R"(
    symbol T
    graph g(%x: i64[T]) {
      %0 = constant i64[] 2
      %1 = expand(%0) {shape=(T)} : i64[T]
      %2 = mul(%x, %1) : i64[T]
      return y=%2
    }
    )");
}

TEST_CASE("what is a symbol everywhere becomes that symbol") {
  becomes(fold_ramps, R"(
    graph g(%x: i64[2, T]) {
      %0 = iota() {shape=(T), axis=0, dtype=i64, start=(0), step=(1)}
      %1 = iota() {shape=(T), axis=0, dtype=i64, start=(T), step=(1)}
      %2 = sub(%1, %0)
      %3 = add(%x, %2)
      return y=%3
    })",
          R"(
    symbol T
    graph g(%x: i64[2, T]) {
      %0 = exprs() {dtype=i64, shape=[], values=(T)} : i64[]
      %1 = expand(%0) {shape=(T)} : i64[T]
      %2 = add(%x, %1) : i64[2, T]
      return y=%2
    }
    )");
}

TEST_CASE("a mask that is true everywhere is one truth value") {
  becomes(fold_ramps, R"(
    graph g(%x: f32[T], %y: f32[T]) {
      %0 = iota() {shape=(T), axis=0, dtype=i64, start=(0), step=(1)}
      %zero = constant i64[] 0
      %1 = greater_equal(%0, %zero)
      %2 = where(%1, %x, %y)
      return y=%2
    })",
          R"(
    symbol T
    graph g(%x: f32[T], %y: f32[T]) {
      %0 = constant bool[] true
      %1 = expand(%0) {shape=(T)} : bool[T]
      %2 = where(%1, %x, %y) : f32[T]
      return y=%2
    }
    )");
}

TEST_CASE("running sums of ones are a range") {
  becomes(fold_ramps, R"(
    graph g(%x: i64[2, T]) {
      %one = constant i64[] 1
      %0 = expand(%one) {shape=(2, T)}
      %1 = cumsum(%0) {axis=1, exclusive=1, reverse=0}
      %2 = add(%x, %1)
      return y=%2
    })",
          R"(
    symbol T
    graph g(%x: i64[2, T]) {
      %0 = iota() {axis=1, dtype=i64, shape=(1, T), start=(0), step=(1)} : i64[1, T]
      %1 = expand(%0) {shape=(2, T)} : i64[2, T]
      %2 = add(%x, %1) : i64[2, T]
      return y=%2
    }
    )");
}

TEST_CASE("positions gathered from a range are a range") {
  becomes(fold_ramps, R"(
    graph g(%x: i64[4]) {
      %0 = iota() {shape=(10), axis=0, dtype=i64, start=(0), step=(3)}
      %at = iota() {shape=(4), axis=0, dtype=i64, start=(2), step=(1)}
      %1 = gather(%0, %at) {axis=0}
      %2 = add(%x, %1)
      return y=%2
    })",
          R"(
    graph g(%x: i64[4]) {
      %0 = iota() {axis=0, dtype=i64, shape=(4), start=(6), step=(3)} : i64[4]
      %1 = add(%x, %0) : i64[4]
      return y=%1
    }
    )");
}

TEST_CASE("ranges of floats stay") {
  stays(fold_ramps, R"(
    graph g(%x: f32[4]) {
      %0 = iota() {shape=(4), axis=0, dtype=f32, start=(0), step=(1)}
      %1 = add(%0, %0)
      %2 = mul(%x, %1)
      return y=%2
    })");
}

TEST_CASE("what depends on two axes stays") {
  stays(fold_ramps, R"(
    graph g(%x: i64[T, T]) {
      %0 = iota() {shape=(T, 1), axis=0, dtype=i64, start=(0), step=(1)}
      %1 = iota() {shape=(1, T), axis=1, dtype=i64, start=(0), step=(1)}
      %2 = add(%0, %1)
      %3 = mul(%x, %2)
      return y=%3
    })");
}

TEST_CASE("a mask that differs from place to place stays") {
  stays(fold_ramps, R"(
    graph g(%x: f32[T, T], %y: f32[T, T]) {
      %0 = iota() {shape=(T, 1), axis=0, dtype=i64, start=(0), step=(1)}
      %1 = iota() {shape=(1, T), axis=1, dtype=i64, start=(0), step=(1)}
      %2 = less_equal(%1, %0)
      %3 = where(%2, %x, %y)
      return y=%3
    })");
}

TEST_CASE("products of two ranges stay") {
  stays(fold_ramps, R"(
    graph g(%x: i64[T]) {
      %0 = iota() {shape=(T), axis=0, dtype=i64, start=(1), step=(1)}
      %1 = mul(%0, %0)
      %2 = add(%x, %1)
      return y=%2
    })");
}

TEST_CASE("numbers that may wrap around in their type stay") {
  stays(fold_ramps, R"(
    graph g(%x: u8[200]) {
      %0 = iota() {shape=(200), axis=0, dtype=u8, start=(0), step=(1)}
      %1 = add(%0, %0)
      %2 = max(%x, %1)
      return y=%2
    })");
}

TEST_CASE("arithmetic on data stays") {
  stays(fold_ramps, R"(
    graph g(%x: i64[T]) {
      %0 = iota() {shape=(T), axis=0, dtype=i64, start=(0), step=(1)}
      %1 = add(%x, %0)
      return y=%1
    })");
}

TEST_CASE("an empty tensor in another shape has no elements to read") {
  stays(fold_ramps, R"(
    graph g(%x: i64[4, 0, 3]) {
      %0 = reshape(%x) {shape=(3, 0, 2)}
      return y=%0
    })");
}

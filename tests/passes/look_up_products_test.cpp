#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("a product of rows that are looked up in a constant table is looked up") {
  becomes(look_up_products, R"(
    graph g(%i: i64[N, T]) {
      %t = constant f32[3, 32] splat 0.5
      %w = constant f32[32, 2] splat 2
      %0 = gather(%t, %i) {axis=0}
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0}
      return y=%1
    })",
          R"(
    symbol N
    symbol T
    graph g(%i: i64[N, T]) {
      %0 = constant f32[3, 2] splat 32
      %1 = gather(%0, %i) {axis=0} : f32[N, T, 2]
      return y=%1
    }
    )");
}

TEST_CASE("weights may be transposed, and each product has a table") {
  becomes(look_up_products, R"(
    graph g(%i: i64[4]) {
      %t = constant f32[3, 32] splat 1
      %a = constant f32[2, 32] splat 2
      %b = constant f32[4, 32] splat 3
      %0 = gather(%t, %i) {axis=0}
      %1 = matmul(%0, %a) {trans_a=0, trans_b=1}
      %2 = matmul(%0, %b) {trans_a=0, trans_b=1}
      return y=%1, z=%2
    })",
          R"(
    graph g(%i: i64[4]) {
      %0 = constant f32[3, 2] splat 64
      %1 = gather(%0, %i) {axis=0} : f32[4, 2]
      %2 = constant f32[3, 4] splat 96
      %3 = gather(%2, %i) {axis=0} : f32[4, 4]
      return y=%1, z=%3
    }
    )");
}

TEST_CASE("short sums stay products") {
  stays(look_up_products, R"(
    graph g(%i: i64[4]) {
      %t = constant f32[3, 16] splat 1
      %w = constant f32[16, 2] splat 2
      %0 = gather(%t, %i) {axis=0}
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0}
      return y=%1
    })");
}

TEST_CASE("a table of more than 8 MiB is not made") {
  stays(look_up_products, R"(
    graph g(%i: i64[4]) {
      %t = constant f32[65537, 32] splat 1
      %w = constant f32[32, 32] splat 2
      %0 = gather(%t, %i) {axis=0}
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0}
      return y=%1
    })");
}

TEST_CASE("rows or weights that are given at run time stay") {
  stays(look_up_products, R"(
    graph g(%i: i64[4], %t: f32[3, 32], %w: f32[32, 2]) {
      %c = constant f32[3, 32] splat 1
      %v = constant f32[32, 2] splat 2
      %0 = gather(%t, %i) {axis=0}
      %1 = matmul(%0, %v) {trans_a=0, trans_b=0}
      %2 = gather(%c, %i) {axis=0}
      %3 = matmul(%2, %w) {trans_a=0, trans_b=0}
      return y=%1, z=%3
    })");
}

TEST_CASE("columns that are looked up, and a transposed left operand, stay") {
  stays(look_up_products, R"(
    graph g(%i: i64[32]) {
      %t = constant f32[32, 64] splat 1
      %w = constant f32[32, 2] splat 2
      %0 = gather(%t, %i) {axis=1}
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0}
      %2 = gather(%t, %i) {axis=0}
      %3 = matmul(%2, %w) {trans_a=1, trans_b=0}
      return y=%1, z=%3
    })");
}

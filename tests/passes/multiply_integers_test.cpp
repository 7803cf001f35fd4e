#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

namespace {

// As for a target whose matrix units take them.
bool with_units(Graph& graph, const PassContext& given) {
  PassContext context = given;
  context.multiplies_integers = true;
  return multiply_integers(graph, context);
}

}  // namespace

TEST_CASE("a product of quantised numbers becomes one of integers, times the scales") {
  becomes(with_units, R"(
    graph g(%q: u8[N, 4]) {
      %0 = cast(%q) {dtype=f32}
      %zero = constant f32[] 128
      %1 = sub(%0, %zero)
      %w = constant f32[4, 2] [0.5, 3, -1, 0.25, 2, 0.5, 0, 0]
      %2 = matmul(%1, %w) {trans_a=0, trans_b=0}
      return y=%2
    })",
          R"(
    symbol N
    graph g(%q: u8[N, 4]) {
      %0 = cast(%q) {dtype=f32} : f32[N, 4]
      %zero = constant f32[] 128
      %1 = sub(%0, %zero) : f32[N, 4]
      %w = constant f32[4, 2] [1, 12, -2, 1, 4, 2, 0, 0]
      %2 = matmul(%1, %w) {integers=1, trans_a=0, trans_b=0} : f32[N, 2]
      %3 = constant f32[2] [0.5, 0.25]
      %4 = mul(%2, %3) : f32[N, 2]
      return y=%4
    }
    )");
}

TEST_CASE("a convolution's scale and bias follow it") {
  becomes(with_units, R"(
    graph g(%q: i8[1, 2, 4, 4], %bias: f32[2]) {
      %0 = cast(%q) {dtype=f32}
      %s = constant f32[] 0.5
      %1 = mul(%0, %s)
      %w = constant f32[2, 2, 1, 1] [0.5, 3, -1, 0.25]
      %2 = conv(%1, %w, %bias) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}
      return y=%2
    })",
          R"(
    graph g(%q: i8[1, 2, 4, 4], %bias: f32[2]) {
      %0 = cast(%q) {dtype=f32} : f32[1, 2, 4, 4]
      %w = constant f32[2, 2, 1, 1] [1, 6, -4, 1]
      %1 = conv(%0, %w) {dilations=[1, 1], group=1, integers=1, pads=[0, 0, 0, 0], strides=[1, 1]} : f32[1, 2, 4, 4]
      %2 = constant f32[2] [0.25, 0.125]
      %3 = reshape(%2) {shape=(2, 1, 1)} : f32[2, 1, 1]
      %4 = mul(%1, %3) : f32[1, 2, 4, 4]
      %5 = reshape(%bias) {shape=(2, 1, 1)} : f32[2, 1, 1]
      %6 = add(%4, %5) : f32[1, 2, 4, 4]
      return y=%6
    }
    )");
}

TEST_CASE("weights that are no integers times a scale stay") {
  stays(with_units, R"(
    graph g(%q: u8[N, 4]) {
      %0 = cast(%q) {dtype=f32}
      %w = constant f32[4, 1] [0.5, 3.14159, -1, 2.71828]
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0}
      return y=%1
    })");
}

TEST_CASE("numbers that are no small integers stay") {
  stays(with_units, R"(
    graph g(%x: f32[N, 4], %q: i16[N, 4]) {
      %w = constant f32[4, 1] [0.5, 3, -1, 2]
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = cast(%q) {dtype=f32}
      %2 = matmul(%1, %w) {trans_a=0, trans_b=0}
      return y=%0, z=%2
    })");
}

TEST_CASE("a convolution of a channel a group stays") {
  stays(with_units, R"(
    graph g(%q: u8[1, 2, 4, 4]) {
      %0 = cast(%q) {dtype=f32}
      %w = constant f32[2, 1, 1, 1] [0.5, 3]
      %1 = conv(%0, %w) {dilations=[1, 1], group=2, pads=[0, 0, 0, 0], strides=[1, 1]}
      return y=%1
    })");
}

TEST_CASE("without such units products of quantised numbers stay") {
  stays(multiply_integers, R"(
    graph g(%q: u8[N, 4]) {
      %0 = cast(%q) {dtype=f32}
      %w = constant f32[4, 1] [0.5, 3, -1, 2]
      %1 = matmul(%0, %w) {trans_a=0, trans_b=0}
      return y=%1
    })");
}

TEST_CASE("scales of a product of integers do not go into its weights") {
  stays(fold_batchnorm, R"(
    graph g(%x: f32[N, 4]) {
      %w = constant f32[4, 2] [1, 3, -1, 2, 5, 7, 0, 1]
      %0 = matmul(%x, %w) {integers=1, trans_a=0, trans_b=0}
      %s = constant f32[2] [0.1, 0.2]
      %1 = mul(%0, %s)
      return y=%1
    })");
  stays(sink_scalars, R"(
    graph g(%x: f32[N, 4], %w: f32[4, 2]) {
      %s = constant f32[] 2
      %0 = mul(%x, %s)
      %1 = matmul(%0, %w) {integers=1, trans_a=0, trans_b=0}
      return y=%1
    })");
}

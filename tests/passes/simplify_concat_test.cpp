#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("concatenation of one operand vanishes, empty operands are dropped") {
  becomes(simplify_concat, R"(
    graph g(%a: f32[N, 2], %b: f32[N, 0], %c: f32[N, 3]) {
      %0 = concat(%a) {axis=1}
      %1 = concat(%0, %b, %c) {axis=1}
      return y=%1
    })",
          R"(
    symbol N
    graph g(%a: f32[N, 2], %b: f32[N, 0], %c: f32[N, 3]) {
      %0 = concat(%a, %c) {axis=1} : f32[N, 5]
      return y=%0
    }
    )");
}

TEST_CASE("nested concatenations along one axis are one") {
  becomes(simplify_concat, R"(
    graph g(%a: f32[N, 2], %b: f32[N, 3], %c: f32[N, 4]) {
      %0 = concat(%b, %c) {axis=1}
      %1 = concat(%a, %0, %a) {axis=1}
      return y=%1
    })",
          R"(
    symbol N
    graph g(%a: f32[N, 2], %b: f32[N, 3], %c: f32[N, 4]) {
      %0 = concat(%a, %b, %c, %a) {axis=1} : f32[N, 11]
      return y=%0
    }
    )");
}

TEST_CASE("adjacent slices of one tensor are one slice") {
  becomes(simplify_concat, R"(
    graph g(%x: f32[N, 8], %y: f32[N, 1]) {
      %0 = slice(%x) {starts=(0, 1), sizes=(N, 2), steps=[1, 1]}
      %1 = slice(%x) {starts=(0, 3), sizes=(N, 4), steps=[1, 1]}
      %2 = concat(%0, %1, %y) {axis=1}
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 8], %y: f32[N, 1]) {
      %0 = slice(%x) {sizes=(N, 6), starts=(0, 1), steps=[1, 1]} : f32[N, 6]
      %1 = concat(%0, %y) {axis=1} : f32[N, 7]
      return y=%1
    }
    )");
}

TEST_CASE("all slices of a tensor in order are the tensor") {
  becomes(simplify_concat, R"(
    graph g(%x: f32[P + T, 2]) {
      %0 = slice(%x) {starts=(0, 0), sizes=(P, 2), steps=[1, 1]}
      %1 = slice(%x) {starts=(P, 0), sizes=(T, 2), steps=[1, 1]}
      %2 = concat(%0, %1) {axis=0}
      %3 = relu(%2)
      return y=%3
    })",
          R"(
    symbol P
    symbol T
    graph g(%x: f32[P + T, 2]) {
      %0 = relu(%x) : f32[P + T, 2]
      return y=%0
    }
    )");
}

TEST_CASE("transpose of stacked tensors is a concatenation of reshapes") {
  becomes(simplify_concat, R"(
    graph g(%a: f32[N, 4], %b: f32[N, 4]) {
      %0 = reshape(%a) {shape=(1, N, 4)}
      %1 = reshape(%b) {shape=(1, N, 4)}
      %2 = concat(%0, %1) {axis=0}
      %3 = transpose(%2) {perm=[1, 0, 2]}
      return y=%3
    })",
          R"(
    symbol N
    graph g(%a: f32[N, 4], %b: f32[N, 4]) {
      %0 = reshape(%a) {shape=(1, N, 4)} : f32[1, N, 4]
      %1 = reshape(%b) {shape=(1, N, 4)} : f32[1, N, 4]
      %2 = reshape(%0) {shape=(N, 1, 4)} : f32[N, 1, 4]
      %3 = reshape(%1) {shape=(N, 1, 4)} : f32[N, 1, 4]
      %4 = concat(%2, %3) {axis=1} : f32[N, 2, 4]
      return y=%4
    }
    )");
}

TEST_CASE("reshape that joins the stacked axis goes into the pieces") {
  becomes(simplify_concat, R"(
    graph g(%a: f32[N, 4], %b: f32[N, 4]) {
      %0 = reshape(%a) {shape=(N, 1, 4)}
      %1 = reshape(%b) {shape=(N, 1, 4)}
      %2 = concat(%0, %1) {axis=1}
      %3 = reshape(%2) {shape=(N, 8)}
      return y=%3
    })",
          R"(
    symbol N
    graph g(%a: f32[N, 4], %b: f32[N, 4]) {
      %0 = reshape(%a) {shape=(N, 1, 4)} : f32[N, 1, 4]
      %1 = reshape(%b) {shape=(N, 1, 4)} : f32[N, 1, 4]
      %2 = reshape(%0) {shape=(N, 4)} : f32[N, 4]
      %3 = reshape(%1) {shape=(N, 4)} : f32[N, 4]
      %4 = concat(%2, %3) {axis=1} : f32[N, 8]
      return y=%4
    }
    )");
}

TEST_CASE("a concatenation that starts with an earlier one reads it") {
  becomes(simplify_concat, R"(
    graph g(%a: f32[N, 2], %b: f32[N, 3], %c: f32[N, 4]) {
      %0 = concat(%a, %b) {axis=1}
      %1 = relu(%0)
      %2 = concat(%a, %b, %c) {axis=1}
      return y=%1, z=%2
    })",
          R"(
    symbol N
    graph g(%a: f32[N, 2], %b: f32[N, 3], %c: f32[N, 4]) {
      %0 = concat(%a, %b) {axis=1} : f32[N, 5]
      %1 = relu(%0) : f32[N, 5]
      %2 = concat(%0, %c) {axis=1} : f32[N, 9]
      return y=%1, z=%2
    }
    )");
}

TEST_CASE("nested concatenations along two axes stay") {
  stays(simplify_concat, R"(
    graph g(%a: f32[2, 2], %b: f32[2, 2], %c: f32[4, 2]) {
      %0 = concat(%a, %b) {axis=0}
      %1 = concat(%0, %c) {axis=1}
      return y=%1
    })");
}

TEST_CASE("an inner concatenation with another user stays") {
  stays(simplify_concat, R"(
    graph g(%a: f32[N, 2], %b: f32[N, 3], %c: f32[N, 4]) {
      %0 = concat(%a, %b) {axis=1}
      %1 = concat(%0, %c) {axis=1}
      return y=%1, z=%0
    })");
}

TEST_CASE("slices with a gap, of two tensors or in another order stay") {
  stays(simplify_concat, R"(
    graph g(%x: f32[N, 8], %y: f32[N, 8]) {
      %0 = slice(%x) {starts=(0, 0), sizes=(N, 2), steps=[1, 1]}
      %1 = slice(%x) {starts=(0, 3), sizes=(N, 2), steps=[1, 1]}
      %2 = slice(%y) {starts=(0, 5), sizes=(N, 2), steps=[1, 1]}
      %3 = concat(%0, %1, %2, %0) {axis=1}
      return y=%3
    })");
}

TEST_CASE("slices that meet on another axis than the joined one stay") {
  stays(simplify_concat, R"(
    graph g(%x: f32[4, 8]) {
      %0 = slice(%x) {starts=(0, 0), sizes=(4, 2), steps=[1, 1]}
      %1 = slice(%x) {starts=(0, 2), sizes=(4, 2), steps=[1, 1]}
      %2 = concat(%0, %1) {axis=0}
      return y=%2
    })");
}

TEST_CASE("a slice and its mirror image stay") {
  stays(simplify_concat, R"(
    graph g(%x: f32[8]) {
      %0 = slice(%x) {starts=(0), sizes=(4), steps=[1]}
      %1 = slice(%x) {starts=(7), sizes=(4), steps=[-1]}
      %2 = concat(%0, %1) {axis=0}
      return y=%2
    })");
}

TEST_CASE("transpose of stacked matrices that turns them stays") {
  stays(simplify_concat, R"(
    graph g(%a: f32[N, 4], %b: f32[N, 4]) {
      %0 = reshape(%a) {shape=(1, N, 4)}
      %1 = reshape(%b) {shape=(1, N, 4)}
      %2 = concat(%0, %1) {axis=0}
      %3 = transpose(%2) {perm=[2, 0, 1]}
      return y=%3
    })");
}

TEST_CASE("reshape that joins the stacked axis with the axis before it stays") {
  stays(simplify_concat, R"(
    graph g(%a: f32[2, 4], %b: f32[2, 4]) {
      %0 = reshape(%a) {shape=(2, 1, 4)}
      %1 = reshape(%b) {shape=(2, 1, 4)}
      %2 = concat(%0, %1) {axis=1}
      %3 = reshape(%2) {shape=(4, 4)}
      return y=%3
    })");
}

TEST_CASE("a common suffix, and a prefix that comes later, stay") {
  stays(simplify_concat, R"(
    graph g(%a: f32[N, 2], %b: f32[N, 3], %c: f32[N, 4]) {
      %0 = concat(%b, %c) {axis=1}
      %1 = concat(%a, %b, %c) {axis=1}
      %2 = concat(%a, %b) {axis=1}
      return x=%0, y=%1, z=%2
    })");
}

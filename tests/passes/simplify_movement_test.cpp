#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("reshape of reshape is one reshape") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[N, 3, 4]) {
      %0 = reshape(%x) {shape=(N, 12)}
      %1 = reshape(%0) {shape=(2, 6*N)}
      return y=%1
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 3, 4]) {
      %0 = reshape(%x) {shape=(2, 6*N)} : f32[2, 6*N]
      return y=%0
    }
    )");
}

TEST_CASE("reshape back to the same shape vanishes") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[N, 3, 4]) {
      %0 = reshape(%x) {shape=(N, 12)}
      %1 = reshape(%0) {shape=(N, 3, 4)}
      %2 = relu(%1)
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 3, 4]) {
      %0 = relu(%x) : f32[N, 3, 4]
      return y=%0
    }
    )");
}

TEST_CASE("a spread that moves its elements stays though the shape is the same") {
  stays(simplify_movement, R"(
    graph g(%x: f32[2, 5]) {
      %0 = spread(%x) {starts=[0, 1], strides=[1, 1], sizes=(2, 5)}
      return y=%0
    })");
}

TEST_CASE("a shared intermediate reshape stays for its other user") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[3, 4]) {
      %0 = reshape(%x) {shape=(12)}
      %1 = reshape(%0) {shape=(4, 3)}
      return y=%1, z=%0
    })",
          R"(
    graph g(%x: f32[3, 4]) {
      %0 = reshape(%x) {shape=(12)} : f32[12]
      %1 = reshape(%x) {shape=(4, 3)} : f32[4, 3]
      return y=%1, z=%0
    }
    )");
}

TEST_CASE("transposes compose") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[2, 3, 4]) {
      %0 = transpose(%x) {perm=[2, 0, 1]}
      %1 = transpose(%0) {perm=[0, 2, 1]}
      %2 = transpose(%1) {perm=[2, 1, 0]}
      %3 = relu(%1)
      return y=%2, z=%3
    })",
          R"(
    graph g(%x: f32[2, 3, 4]) {
      %0 = transpose(%x) {perm=[2, 1, 0]} : f32[4, 3, 2]
      %1 = relu(%0) : f32[4, 3, 2]
      return y=%x, z=%1
    }
    )");
}

TEST_CASE("transpose of unit axes is a reshape") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[1, T, 1, 4]) {
      %0 = transpose(%x) {perm=[1, 0, 3, 2]}
      return y=%0
    })",
          R"(
    symbol T
    graph g(%x: f32[1, T, 1, 4]) {
      %0 = reshape(%x) {shape=(T, 1, 4, 1)} : f32[T, 1, 4, 1]
      return y=%0
    }
    )");
}

TEST_CASE("transpose of data axes stays") {
  stays(simplify_movement, R"(
    graph g(%x: f32[2, T, 1, 4]) {
      %0 = transpose(%x) {perm=[1, 0, 3, 2]}
      return y=%0
    })");
}

TEST_CASE("reshape that splits an axis stays behind the transpose") {
  stays(simplify_movement, R"(
    graph g(%x: f32[N, T, 12]) {
      %0 = reshape(%x) {shape=(N, T, 3, 4)}
      %1 = transpose(%0) {perm=[0, 2, 1, 3]}
      return y=%1
    })");
}

TEST_CASE("transpose goes in front of a reshape that only inserts units") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[4, N, 3, 8]) {
      %0 = reshape(%x) {shape=(1, 4, N, 3, 8)}
      %1 = transpose(%0) {perm=[3, 1, 2, 0, 4]}
      %2 = reshape(%1) {shape=(3, 4, N, 8)}
      return y=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[4, N, 3, 8]) {
      %0 = transpose(%x) {perm=[2, 0, 1, 3]} : f32[3, 4, N, 8]
      return y=%0
    }
    )");
}

TEST_CASE("expand is left to implicit broadcasting") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[N, 4], %b: f32[1, 4]) {
      %0 = expand(%b) {shape=(N, 4)}
      %1 = add(%x, %0)
      return y=%1
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 4], %b: f32[1, 4]) {
      %0 = add(%x, %b) : f32[N, 4]
      return y=%0
    }
    )");
}

TEST_CASE("expand that gives the result its shape stays") {
  stays(simplify_movement, R"(
    graph g(%x: f32[1, 4], %b: f32[1, 4]) {
      %0 = expand(%b) {shape=(N, 4)}
      %1 = add(%x, %0)
      return y=%1
    })");
}

TEST_CASE("leading units of an operand are left to broadcasting") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[N, 2, 4], %b: f32[4]) {
      %0 = reshape(%b) {shape=(1, 1, 4)}
      %1 = mul(%x, %0)
      return y=%1
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 2, 4], %b: f32[4]) {
      %0 = mul(%x, %b) : f32[N, 2, 4]
      return y=%0
    }
    )");
}

TEST_CASE("slices compose") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[20, 6]) {
      %0 = slice(%x) {starts=(2, 0), sizes=(8, 6), steps=[2, 1]}
      %1 = slice(%0) {starts=(7, 1), sizes=(4, 5), steps=[-2, 1]}
      return y=%1
    })",
          R"(
    graph g(%x: f32[20, 6]) {
      %0 = slice(%x) {sizes=(4, 5), starts=(16, 1), steps=[-4, 1]} : f32[4, 5]
      return y=%0
    }
    )");
}

TEST_CASE("slice of everything vanishes") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[N, 6]) {
      %0 = slice(%x) {starts=(0, 0), sizes=(N, 6), steps=[1, 1]}
      return y=%0
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 6]) {
      return y=%x
    }
    )");
}

TEST_CASE("flip of a whole axis stays") {
  stays(simplify_movement, R"(
    graph g(%x: f32[3, 6]) {
      %0 = slice(%x) {starts=(0, 5), sizes=(3, 6), steps=[1, -1]}
      return y=%0
    })");
}

TEST_CASE("slice of a concatenation reads the pieces it touches") {
  becomes(simplify_movement, R"(
    graph g(%a: f32[N, 2], %b: f32[N, 3], %c: f32[N, 4]) {
      %0 = concat(%a, %b, %c) {axis=1}
      %1 = slice(%0) {starts=(0, 2), sizes=(N, 3), steps=[1, 1]}
      %2 = slice(%0) {starts=(0, 4), sizes=(N, 2), steps=[1, 1]}
      return y=%1, z=%2
    })",
          R"(
    symbol N
    graph g(%a: f32[N, 2], %b: f32[N, 3], %c: f32[N, 4]) {
      %0 = slice(%b) {sizes=(N, 1), starts=(0, 2), steps=[1, 1]} : f32[N, 1]
      %1 = slice(%c) {sizes=(N, 1), starts=(0, 0), steps=[1, 1]} : f32[N, 1]
      %2 = concat(%0, %1) {axis=1} : f32[N, 2]
      return y=%b, z=%2
    }
    )");
}

TEST_CASE("slice across all pieces of a concatenation stays") {
  stays(simplify_movement, R"(
    graph g(%a: f32[N, 2], %b: f32[N, 3]) {
      %0 = concat(%a, %b) {axis=1}
      %1 = slice(%0) {starts=(0, 1), sizes=(N, 3), steps=[1, 1]}
      return y=%1
    })");
}

TEST_CASE("slice at a position of unknown order stays") {
  stays(simplify_movement, R"(
    graph g(%a: f32[P, 2], %b: f32[T, 2]) {
      %0 = concat(%a, %b) {axis=0}
      %1 = slice(%0) {starts=(Q, 0), sizes=(1, 2), steps=[1, 1]}
      return y=%1
    })");
}

TEST_CASE("slice moves in front of transpose and of a split axis") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[T, N, 12]) {
      %0 = reshape(%x) {shape=(T, N, 3, 4)}
      %1 = transpose(%0) {perm=[2, 1, 0, 3]}
      %2 = slice(%1) {starts=(1, 0, 0, 0), sizes=(1, N, T, 4), steps=[1, 1, 1, 1]}
      %3 = reshape(%2) {shape=(N, T, 4)}
      return y=%3
    })",
          R"(
    symbol N
    symbol T
    graph g(%x: f32[T, N, 12]) {
      %0 = slice(%x) {sizes=(T, N, 4), starts=(0, 0, 4), steps=[1, 1, 1]} : f32[T, N, 4]
      %1 = transpose(%0) {perm=[1, 0, 2]} : f32[N, T, 4]
      return y=%1
    }
    )");
}

TEST_CASE("slice of the inner part of a split axis stays") {
  stays(simplify_movement, R"(
    graph g(%x: f32[N, 12]) {
      %0 = reshape(%x) {shape=(N, 3, 4)}
      %1 = slice(%0) {starts=(0, 0, 1), sizes=(N, 3, 2), steps=[1, 1, 1]}
      return y=%1
    })");
}

TEST_CASE("transposed operands of a matrix product become flags") {
  becomes(simplify_movement, R"(
    graph g(%q: f32[N, T, 2, 8], %k: f32[N, T, 2, 8]) {
      %0 = transpose(%q) {perm=[0, 2, 1, 3]}
      %1 = transpose(%k) {perm=[0, 2, 3, 1]}
      %2 = matmul(%0, %1) {trans_a=0, trans_b=0}
      return y=%2
    })",
          R"(
    symbol N
    symbol T
    graph g(%q: f32[N, T, 2, 8], %k: f32[N, T, 2, 8]) {
      %0 = transpose(%q) {perm=[0, 2, 1, 3]} : f32[N, 2, T, 8]
      %1 = transpose(%k) {perm=[0, 2, 1, 3]} : f32[N, 2, T, 8]
      %2 = matmul(%0, %1) {trans_a=0, trans_b=1} : f32[N, 2, T, T]
      return y=%2
    }
    )");
}

TEST_CASE("a transpose that keeps the innermost axis stays") {
  stays(simplify_movement, R"(
    graph g(%a: f32[4, 3, 8], %b: f32[3, 8, 5]) {
      %0 = transpose(%a) {perm=[1, 0, 2]}
      %1 = matmul(%0, %b) {trans_a=0, trans_b=0}
      return y=%1
    })");
}

TEST_CASE("a transposed product is the product of the transposed operands in the other order") {
  becomes(simplify_movement, R"(
    graph g(%a: f32[2, 8, 3], %b: f32[2, 8, 5]) {
      %0 = matmul(%a, %b) {trans_a=1, trans_b=0}
      %1 = transpose(%0) {perm=[0, 2, 1]}
      return y=%1
    })",
          R"(
    graph g(%a: f32[2, 8, 3], %b: f32[2, 8, 5]) {
      %0 = matmul(%b, %a) {trans_a=1, trans_b=0} : f32[2, 5, 3]
      return y=%0
    }
    )");
}

TEST_CASE("a product that is read as it is, of a constant, or whose batches are moved stays in front of the transpose") {
  stays(simplify_movement, R"(
    graph g(%a: f32[3, 8], %b: f32[8, 5]) {
      %0 = matmul(%a, %b) {trans_a=0, trans_b=0} : f32[3, 5]
      %1 = transpose(%0) {perm=[1, 0]} : f32[5, 3]
      return x=%0, y=%1
    })");
  stays(simplify_movement, R"(
    graph g(%a: f32[3, 2]) {
      %0 = constant f32[2, 2] [1, 2, 3, 4]
      %1 = matmul(%a, %0) {trans_a=0, trans_b=0} : f32[3, 2]
      %2 = transpose(%1) {perm=[1, 0]} : f32[2, 3]
      return y=%2
    })");
  stays(simplify_movement, R"(
    graph g(%a: f32[2, 3, 8], %b: f32[2, 8, 5]) {
      %0 = matmul(%a, %b) {trans_a=0, trans_b=0} : f32[2, 3, 5]
      %1 = transpose(%0) {perm=[2, 0, 1]} : f32[5, 2, 3]
      return y=%1
    })");
}

TEST_CASE("a transposed weight is not copied") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[N, 4]) {
      %w = constant f32[3, 4] random 1
      %0 = transpose(%w) {perm=[1, 0]}
      %1 = matmul(%x, %0) {trans_a=0, trans_b=0}
      return y=%1
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 4]) {
      %w = constant f32[3, 4] [0.13312304, 0.49156344, 0.9420054, -0.11128163, -0.1114707, 0.52578866, 0.7546973, 0.046134353, -0.42898273, 0.58799314, -0.19171572, 0.2108407]
      %0 = matmul(%x, %w) {trans_a=0, trans_b=1} : f32[N, 3]
      return y=%0
    }
    )");
}

TEST_CASE("reshape of a constant shares its bytes") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[2, 2]) {
      %w = constant f32[4] [1, 2, 3, 4]
      %0 = reshape(%w) {shape=(2, 2)}
      %1 = add(%x, %0)
      return y=%1
    })",
          R"(
    graph g(%x: f32[2, 2]) {
      %w = constant f32[2, 2] [1, 2, 3, 4]
      %0 = add(%x, %w) : f32[2, 2]
      return y=%0
    }
    )");
}

TEST_CASE("zero padding goes into the convolution") {
  becomes(simplify_movement, R"(
    graph g(%x: f32[N, 2, 6, 6]) {
      %w = constant f32[1, 2, 3, 3] random 1
      %0 = pad(%x) {before=(0, 0, 1, 0), after=(0, 0, 0, 2), value=0.0, mode="constant"}
      %1 = conv(%0, %w) {strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1}
      return y=%1
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 2, 6, 6]) {
      %w = constant f32[1, 2, 3, 3] [0.13312304, 0.49156344, 0.9420054, -0.11128163, -0.1114707, 0.52578866, 0.7546973, 0.046134353, -0.42898273, 0.58799314, -0.19171572, 0.2108407, -0.09012425, 0.060157895, -0.12806928, -0.66593003, 0.2906692, 0.63070107]
      %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[2, 1, 1, 3], strides=[1, 1]} : f32[N, 1, 7, 8]
      return y=%0
    }
    )");
}

TEST_CASE("padding with ones or of channels stays in front of the convolution") {
  stays(simplify_movement, R"(
    graph g(%x: f32[N, 2, 6, 6]) {
      %w = constant f32[1, 2, 3, 3] random 1
      %v = constant f32[1, 3, 3, 3] random 1
      %0 = pad(%x) {before=(0, 0, 1, 0), after=(0, 0, 0, 2), value=1.0, mode="constant"}
      %1 = conv(%0, %w) {strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1}
      %2 = pad(%x) {before=(0, 1, 0, 0), after=(0, 0, 0, 0), value=0.0, mode="constant"}
      %3 = conv(%2, %v) {strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1}
      return y=%1, z=%3
    })");
}

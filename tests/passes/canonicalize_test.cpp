#include <doctest/doctest.h>

#include "tests/passes/check.h"

using namespace oclc;

TEST_CASE("constants go to the right of commutative operators") {
  becomes(canonicalize, R"(
    graph g(%x: f32[N, 2]) {
      %c = constant f32[2] [3, 4]
      %0 = mul(%c, %x)
      %1 = sub(%c, %0)
      return y=%1
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 2]) {
      %c = constant f32[2] [3, 4]
      %0 = mul(%x, %c) : f32[N, 2]
      %1 = sub(%c, %0) : f32[N, 2]
      return y=%1
    }
    )");
}

TEST_CASE("operands of equal elements become scalars") {
  becomes(canonicalize, R"(
    graph g(%x: f32[3, 2]) {
      %c = constant f32[3, 2] splat 0.3
      %0 = mul(%x, %c)
      return y=%0
    })",
          R"(
    graph g(%x: f32[3, 2]) {
      %0 = constant f32[] 0.3
      %1 = mul(%x, %0) : f32[3, 2]
      return y=%1
    }
    )");
}

TEST_CASE("neutral operands vanish") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2], %b: bool[2]) {
      %zero = constant f32[] 0
      %one = constant f32[] 1
      %true = constant bool[] true
      %0 = add(%x, %zero)
      %1 = mul(%one, %0)
      %2 = div(%1, %one)
      %3 = pow(%2, %one)
      %4 = sub(%3, %zero)
      %5 = and(%b, %true)
      return y=%4, b=%5
    })",
          R"(
    graph g(%x: f32[2], %b: bool[2]) {
      return y=%x, b=%b
    }
    )");
}

TEST_CASE("a neutral operand that gives the result its shape becomes an expand") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2]) {
      %zero = constant f32[3, 2] splat 0
      %0 = add(%x, %zero)
      %1 = exp(%0)
      return y=%1
    })",
          R"(
    graph g(%x: f32[2]) {
      %0 = expand(%x) {shape=(3, 2)} : f32[3, 2]
      %1 = exp(%0) : f32[3, 2]
      return y=%1
    }
    )");
}

TEST_CASE("decisive operands decide") {
  becomes(canonicalize, R"(
    graph g(%a: bool[2], %n: i32[2], %b: bool[2]) {
      %true = constant bool[] true
      %zero = constant i32[] 0
      %0 = or(%a, %true)
      %1 = mul(%n, %zero)
      %2 = xor(%b, %true)
      return x=%0, y=%1, z=%2
    })",
          R"(
    graph g(%a: bool[2], %n: i32[2], %b: bool[2]) {
      %0 = constant bool[] true
      %1 = expand(%0) {shape=(2)} : bool[2]
      %2 = constant i32[] 0
      %3 = expand(%2) {shape=(2)} : i32[2]
      %4 = not(%b) : bool[2]
      return x=%1, y=%3, z=%4
    }
    )");
}

TEST_CASE("double negation and repeated functions vanish") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2], %y: f32[2]) {
      %0 = neg(%x)
      %1 = neg(%0)
      %2 = relu(%y)
      %3 = relu(%2)
      %4 = neg(%x)
      %5 = abs(%4)
      %6 = max(%y, %y)
      return a=%1, b=%3, c=%5, d=%6
    })",
          R"(
    graph g(%x: f32[2], %y: f32[2]) {
      %0 = relu(%y) : f32[2]
      %1 = abs(%x) : f32[2]
      return a=%x, b=%0, c=%1, d=%y
    }
    )");
}

TEST_CASE("division by a power of two is a multiplication") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2]) {
      %eight = constant f32[] 8
      %0 = div(%x, %eight)
      return y=%0
    })",
          R"(
    graph g(%x: f32[2]) {
      %0 = constant f32[] 0.125
      %1 = mul(%x, %0) : f32[2]
      return y=%1
    }
    )");
}

TEST_CASE("powers are products and roots") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2]) {
      %two = constant f32[] 2
      %half = constant f32[] 0.5
      %three = constant f32[] 3
      %minus_half = constant f32[] -0.5
      %minus_one = constant f32[] -1
      %4 = abs(%x)
      %0 = pow(%x, %two)
      %1 = pow(%4, %half)
      %2 = pow(%x, %three)
      %3 = pow(%4, %minus_half)
      %5 = pow(%x, %minus_one)
      return a=%0, b=%1, c=%2, d=%3, e=%5
    })",
          R"(
    graph g(%x: f32[2]) {
      %0 = abs(%x) : f32[2]
      %1 = mul(%x, %x) : f32[2]
      %2 = sqrt(%0) : f32[2]
      %3 = mul(%x, %x) : f32[2]
      %4 = mul(%3, %x) : f32[2]
      %5 = rsqrt(%0) : f32[2]
      %6 = reciprocal(%x) : f32[2]
      return a=%1, b=%2, c=%4, d=%5, e=%6
    }
    )");
}

TEST_CASE("one over a root is rsqrt, one over a number its reciprocal") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2]) {
      %one = constant f32[] 1
      %0 = exp(%x)
      %1 = sqrt(%0)
      %2 = div(%one, %1)
      %3 = div(%one, %0)
      return y=%2, z=%3
    })",
          R"(
    graph g(%x: f32[2]) {
      %0 = exp(%x) : f32[2]
      %1 = rsqrt(%0) : f32[2]
      %2 = reciprocal(%0) : f32[2]
      return y=%1, z=%2
    }
    )");
}

TEST_CASE("signs of sums are drawn into the operator or the constant") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2], %y: f32[2], %n: i32[2]) {
      %c = constant f32[2] [1, -2]
      %k = constant i32[] 7
      %zero = constant f32[] 0
      %0 = sub(%x, %c)
      %1 = neg(%y)
      %2 = add(%x, %1)
      %3 = sub(%x, %1)
      %4 = sub(%zero, %x)
      %5 = sub(%n, %k)
      return a=%0, b=%2, c=%3, d=%4, e=%5
    })",
          R"(
    graph g(%x: f32[2], %y: f32[2], %n: i32[2]) {
      %0 = constant f32[2] [-1, 2]
      %1 = add(%x, %0) : f32[2]
      %2 = sub(%x, %y) : f32[2]
      %3 = add(%x, %y) : f32[2]
      %4 = neg(%x) : f32[2]
      %5 = constant i32[] -7
      %6 = add(%n, %5) : i32[2]
      return a=%1, b=%2, c=%3, d=%4, e=%6
    }
    )");
}

TEST_CASE("successive constants merge") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2], %n: i32[2]) {
      %a = constant f32[] 3
      %b = constant f32[] 0.5
      %two = constant i32[] 2
      %0 = mul(%x, %a)
      %1 = mul(%0, %b)
      %2 = min(%1, %a)
      %3 = min(%2, %b)
      %4 = add(%n, %two)
      %5 = add(%4, %two)
      return y=%3, n=%5
    })",
          R"(
    graph g(%x: f32[2], %n: i32[2]) {
      %0 = constant f32[] 1.5
      %1 = mul(%x, %0) : f32[2]
      %2 = constant f32[] 0.5
      %3 = min(%1, %2) : f32[2]
      %4 = constant i32[] 4
      %5 = add(%n, %4) : i32[2]
      return y=%3, n=%5
    }
    )");
}

TEST_CASE("maximum with zero is relu, fma with a neutral operand is simpler") {
  becomes(canonicalize, R"(
    graph g(%x: f32[2], %y: f32[2]) {
      %zero = constant f32[] 0
      %one = constant f32[] 1
      %0 = max(%x, %zero)
      %1 = fma(%x, %one, %y)
      %2 = fma(%x, %y, %zero)
      return a=%0, b=%1, c=%2
    })",
          R"(
    graph g(%x: f32[2], %y: f32[2]) {
      %0 = relu(%x) : f32[2]
      %1 = add(%x, %y) : f32[2]
      %2 = mul(%x, %y) : f32[2]
      return a=%0, b=%1, c=%2
    }
    )");
}

TEST_CASE("choices that are known are made") {
  becomes(canonicalize, R"(
    graph g(%c: bool[2], %x: f32[2], %y: f32[2]) {
      %true = constant bool[] true
      %false = constant bool[] false
      %0 = where(%true, %x, %y)
      %1 = where(%c, %x, %x)
      %2 = not(%c)
      %3 = where(%2, %x, %y)
      %4 = where(%c, %true, %false)
      %5 = where(%c, %false, %true)
      return a=%0, b=%1, c=%3, d=%4, e=%5
    })",
          R"(
    graph g(%c: bool[2], %x: f32[2], %y: f32[2]) {
      %0 = where(%c, %y, %x) : f32[2]
      %1 = not(%c) : bool[2]
      return a=%x, b=%x, c=%0, d=%c, e=%1
    }
    )");
}

TEST_CASE("negated comparisons of integers are the opposite comparison") {
  becomes(canonicalize, R"(
    graph g(%a: i64[2], %b: i64[2]) {
      %0 = less(%a, %b)
      %1 = not(%0)
      return y=%1
    })",
          R"(
    graph g(%a: i64[2], %b: i64[2]) {
      %0 = greater_equal(%a, %b) : bool[2]
      return y=%0
    }
    )");
}

TEST_CASE("casts through a wider type merge") {
  becomes(canonicalize, R"(
    graph g(%x: i32[2], %h: f16[2], %f: f32[2]) {
      %0 = cast(%x) {dtype=i64}
      %1 = cast(%0) {dtype=f32}
      %2 = cast(%h) {dtype=f32}
      %3 = cast(%2) {dtype=f16}
      %4 = cast(%f) {dtype=f32}
      return a=%1, b=%3, c=%4
    })",
          R"(
    graph g(%x: i32[2], %h: f16[2], %f: f32[2]) {
      %0 = cast(%x) {dtype=f32} : f32[2]
      return a=%0, b=%h, c=%f
    }
    )");
}

TEST_CASE("reductions of reductions merge, over unit axes they are reshapes") {
  becomes(canonicalize, R"(
    graph g(%x: f32[N, 2, 3, 4], %y: f32[N, 1]) {
      %0 = reduce_mean(%x) {axes=[3], keepdims=0}
      %1 = reduce_mean(%0) {axes=[2], keepdims=1}
      %2 = reduce_max(%y) {axes=[1], keepdims=0}
      return y=%1, z=%2
    })",
          R"(
    symbol N
    graph g(%x: f32[N, 2, 3, 4], %y: f32[N, 1]) {
      %0 = reduce_mean(%x) {axes=[2, 3], keepdims=1} : f32[N, 2, 1, 1]
      %1 = reshape(%0) {shape=(N, 2, 1)} : f32[N, 2, 1]
      %2 = reshape(%y) {shape=(N)} : f32[N]
      return y=%1, z=%2
    }
    )");
}

TEST_CASE("pooling over single elements vanishes") {
  becomes(canonicalize, R"(
    graph g(%x: f32[1, 2, 4, 4]) {
      %0 = max_pool(%x) {kernel=[1, 1], strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0], ceil_mode=0}
      %1 = relu(%0)
      return y=%1
    })",
          R"(
    graph g(%x: f32[1, 2, 4, 4]) {
      %0 = relu(%x) : f32[1, 2, 4, 4]
      return y=%0
    }
    )");
}

TEST_CASE("operators that are not commutative keep their operands' order") {
  stays(canonicalize, R"(
    graph g(%x: f32[2]) {
      %c = constant f32[2] [3, 4]
      %0 = sub(%c, %x)
      %1 = div(%c, %0)
      %2 = pow(%c, %1)
      return y=%2
    })");
}

TEST_CASE("a splat that gives the result its shape stays a tensor") {
  stays(canonicalize, R"(
    graph g(%x: f32[2]) {
      %c = constant f32[3, 2] splat 0.3
      %0 = mul(%x, %c)
      return y=%0
    })");
}

TEST_CASE("a float times zero stays, it may be NaN") {
  stays(canonicalize, R"(
    graph g(%x: f32[2]) {
      %zero = constant f32[] 0
      %0 = mul(%x, %zero)
      return y=%0
    })");
}

TEST_CASE("division by other numbers, and by powers whose inverse half precision lacks, stays") {
  stays(canonicalize, R"(
    graph g(%x: f32[2], %h: f16[2]) {
      %three = constant f32[] 3
      %large = constant f16[] 16384
      %0 = div(%x, %three)
      %1 = div(%h, %large)
      return y=%0, z=%1
    })");
}

TEST_CASE("division of integers is no multiplication") {
  stays(canonicalize, R"(
    graph g(%x: i32[2]) {
      %two = constant i32[] 2
      %0 = div(%x, %two)
      return y=%0
    })");
}

TEST_CASE("powers of unequal exponents, and other exponents, stay") {
  stays(canonicalize, R"(
    graph g(%x: f32[2]) {
      %c = constant f32[2] [2, 3]
      %d = constant f32[] 2.5
      %0 = abs(%x)
      %1 = pow(%0, %c)
      %2 = pow(%1, %d)
      return y=%2
    })");
}

TEST_CASE("sums of floats are not reassociated") {
  stays(canonicalize, R"(
    graph g(%x: f32[2]) {
      %a = constant f32[] 1e+08
      %b = constant f32[] -1e+08
      %0 = add(%x, %a)
      %1 = add(%0, %b)
      return y=%1
    })");
}

TEST_CASE("factors whose product leaves the range stay apart") {
  stays(canonicalize, R"(
    graph g(%x: f32[2]) {
      %a = constant f32[] 1e+15
      %b = constant f32[] 1e+16
      %0 = mul(%x, %a)
      %1 = mul(%0, %b)
      return y=%1
    })");
}

TEST_CASE("negated comparisons of floats stay, NaN is neither less nor not less") {
  stays(canonicalize, R"(
    graph g(%a: f32[2], %b: f32[2]) {
      %0 = less(%a, %b)
      %1 = not(%0)
      return y=%1
    })");
}

TEST_CASE("casts through a narrower type stay") {
  stays(canonicalize, R"(
    graph g(%x: f32[2], %n: i32[2], %b: i32[2]) {
      %0 = cast(%x) {dtype=f16}
      %1 = cast(%0) {dtype=f32}
      %2 = cast(%n) {dtype=i8}
      %3 = cast(%2) {dtype=i32}
      %4 = cast(%b) {dtype=f32}
      %5 = cast(%4) {dtype=i32}
      return a=%1, b=%3, c=%5
    })");
}

TEST_CASE("different reductions of each other stay") {
  stays(canonicalize, R"(
    graph g(%x: f32[2, 3, 4]) {
      %0 = reduce_sum(%x) {axes=[2], keepdims=0}
      %1 = reduce_max(%0) {axes=[1], keepdims=0}
      return y=%1
    })");
}

TEST_CASE("a reduction that is also used elsewhere is read, not repeated") {
  stays(canonicalize, R"(
    graph g(%x: f32[N, 3, 1000]) {
      %0 = reduce_sum(%x) {axes=[2], keepdims=0}
      %1 = reduce_sum(%0) {axes=[1], keepdims=0}
      return y=%1, z=%0
    })");
}

TEST_CASE("pooling over single elements with strides stays") {
  stays(canonicalize, R"(
    graph g(%x: f32[1, 2, 4, 4]) {
      %0 = max_pool(%x) {kernel=[1, 1], strides=[2, 2], dilations=[1, 1], pads=[0, 0, 0, 0], ceil_mode=0}
      return y=%0
    })");
}

TEST_CASE("integers of 8 bits that were floats before are these floats") {
  becomes(canonicalize, R"(
    graph g(%x: f32[N]) {
      %low = constant f32[] 0
      %high = constant f32[] 255
      %0 = round(%x)
      %1 = max(%0, %low)
      %2 = min(%1, %high)
      %3 = cast(%2) {dtype=u8}
      %4 = cast(%3) {dtype=f32}
      return y=%4
    })",
          R"(
    symbol N
    graph g(%x: f32[N]) {
      %high = constant f32[] 255
      %0 = round(%x) : f32[N]
      %1 = relu(%0) : f32[N]
      %2 = min(%1, %high) : f32[N]
      return y=%2
    }
    )");
}

TEST_CASE("floats that may be none of the type's integers are converted") {
  stays(canonicalize, R"(
    graph g(%x: f32[N]) {
      %high = constant f32[] 255
      %0 = round(%x)
      %1 = min(%0, %high)
      %2 = cast(%1) {dtype=u8}
      %3 = cast(%2) {dtype=f32}
      %4 = relu(%x)
      %5 = min(%4, %high)
      %6 = cast(%5) {dtype=u8}
      %7 = cast(%6) {dtype=f32}
      return y=%3, z=%7
    })");
}

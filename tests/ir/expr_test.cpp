#include "compiler/ir/expr.h"

#include <doctest/doctest.h>

using namespace oclc;

TEST_CASE("polynomials are canonical") {
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  CHECK((n + t) * Expr(2) == t * Expr(2) + n + n);
  CHECK((n * t * Expr(768)).text() == "768*N*T");
  CHECK((n - n).constant() == 0);
  CHECK((n * Expr(3) - t + 1).text() == "3*N - T + 1");
}

TEST_CASE("division takes whole multiples out") {
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  CHECK(floor_div(n * t * Expr(768), Expr(768)) == n * t);
  CHECK(floor_div(n * t * Expr(768), t * Expr(64)) == n * Expr(12));
  CHECK(floor_div((n + t) * n, n + t) == n);
  CHECK(floor_div(Expr(-1), Expr(2)) == Expr(-1));
  CHECK(floor_div(n * Expr(2) + 1, Expr(2)) == n);
  CHECK(floor_div(floor_div(n, Expr(3)), Expr(4)) == floor_div(n, Expr(12)));
}

TEST_CASE("numbers among minima and maxima meet") {
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  CHECK(max(max(n, Expr(2)), Expr(3)) == max(n, Expr(3)));
  CHECK(min(Expr(3), min(n, Expr(5))) == min(n, Expr(3)));
  CHECK(floor_div(max(n, Expr(3)) + 1, Expr(2)) == max(floor_div(n + 1, Expr(2)), Expr(2)));
  CHECK(floor_div(min(n, Expr(7)) + 1, Expr(4)) == min(floor_div(n + 1, Expr(4)), Expr(2)));
  CHECK_FALSE(max(min(n, Expr(5)), Expr(3)) == max(n, Expr(3)));
  CHECK_FALSE(floor_div(max(n, t), Expr(2)) == max(floor_div(n, Expr(2)), t));
  for (std::int64_t v = 1; v < 9; ++v) {
    CHECK(floor_div(max(n, Expr(3)) * Expr(2) + 1, Expr(4)).evaluate({{"N", v}}) == (2 * std::max<std::int64_t>(v, 3) + 1) / 4);
    CHECK(floor_div(min(n, Expr(4)) - 6, Expr(3)).evaluate({{"N", v}}) == -((8 - std::min<std::int64_t>(v, 4)) / 3));
  }
}

TEST_CASE("ranges of axes remove divisions") {
  const Expr t = Expr::symbol("T");
  const Expr i = Expr::axis("i", Expr(10)), j = Expr::axis("j", Expr(8)), k = Expr::axis("k", t);
  CHECK(floor_div(i * Expr(8) + j, Expr(8)) == i);
  CHECK(floor_mod(i * Expr(8) + j, Expr(8)) == j);
  CHECK(floor_div(i * t + k, t) == i);
  CHECK(floor_mod(i * t + k, t) == k);
  CHECK(floor_div(i * Expr(8) + j, Expr(4)) == i * Expr(2) + floor_div(j, Expr(4)));
  CHECK(floor_div(i, Expr(8)).text() == "i / 8");
}

TEST_CASE("quotient and remainder of one number join again") {
  const Expr i = Expr::axis("i", Expr(100));
  CHECK(floor_div(i, Expr(7)) * Expr(7) + floor_mod(i, Expr(7)) == i);
  CHECK(floor_div(i, Expr(7)) * Expr(14) + floor_mod(i, Expr(7)) * Expr(2) == i * Expr(2));
  CHECK_FALSE(floor_div(i, Expr(7)) * Expr(8) + floor_mod(i, Expr(7)) == i);
}

TEST_CASE("bounds and proofs") {
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  const Expr k = Expr::axis("k", t);
  CHECK(known_nonnegative(n * t - t));
  CHECK(known_less(k, t));
  CHECK(known_less(k, n * t));
  CHECK_FALSE(known_less(k + 1, t));
  CHECK_FALSE(known_nonnegative(n - t));
  CHECK(Expr::axis("a", Expr(7)).upper() == 6);
  CHECK(min(n, n + 1) == n);
  CHECK(max(k, t) == t);
}

TEST_CASE("text is parsed back") {
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  for (const Expr& e : {n * t * Expr(3) - 2, floor_div(n + 3, Expr(4)) * Expr(5) - t, min(n, t), max(n * Expr(2), t) + 1, -n,
                        Expr(0), floor_mod(n, t)}) {
    CAPTURE(e.text());
    const auto back = parse_expr(e.text());
    REQUIRE(back);
    CHECK(*back == e);
  }
  CHECK_FALSE(parse_expr("N +"));
  CHECK_FALSE(parse_expr("N / 0"));
}

TEST_CASE("evaluation, substitution and coefficients agree") {
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  const Expr e = floor_div(n * Expr(5) + t, Expr(3)) + floor_mod(t, Expr(4)) * n;
  CHECK(e.evaluate({{"N", 7}, {"T", 6}}) == (7 * 5 + 6) / 3 + 6 % 4 * 7);
  CHECK(e.substitute({{"N", Expr(7)}, {"T", Expr(6)}}).constant() == (7 * 5 + 6) / 3 + 6 % 4 * 7);
  CHECK_FALSE(e.evaluate({{"N", 7}}));
  CHECK((n * t * Expr(4) + t).coefficient("N") == t * Expr(4));
  CHECK_FALSE(e.coefficient("N"));
}

TEST_CASE("a flat index split over three axes joins again") {
  const Expr m = Expr::axis("m", Expr(7 * 9 * 11)), t = Expr::symbol("T");
  const Expr n = floor_div(m, Expr(99)), y = floor_mod(floor_div(m, Expr(11)), Expr(9)), x = floor_mod(m, Expr(11));
  CHECK((n * Expr(99) + y * Expr(11) + x) * Expr(64) == m * Expr(64));
  const Expr r = Expr::axis("r", Expr::symbol("N") * t);
  CHECK(floor_div(r, t) * t * Expr(768) + floor_mod(r, t) * Expr(768) == r * Expr(768));
}

TEST_CASE("a quotient of an axis stays below its symbolic extent's") {
  const Expr n = Expr::symbol("N");
  const Expr k = Expr::axis("k", Expr(3136) * n), row = Expr::axis("row", 64);
  CHECK(known_less(floor_div(k, 3136), n));
  CHECK_FALSE(known_less(floor_div(k, 3135), n));
  CHECK(floor_mod(floor_div(row * n * Expr(3136) + k, 3136), n) == floor_div(k, 3136));
  CHECK(floor_div(floor_div(row * n * Expr(3136) + k, 3136), n) == row);
  CHECK(Expr(200704) * floor_div(k, 3136) + Expr(3584) * floor_mod(floor_div(k, 56), 56) + Expr(64) * floor_mod(k, 56) ==
        Expr(64) * k);
}

TEST_CASE("remainders of remainders take no longer than their number says") {
  Expr chain = Expr::symbol("x") * Expr::symbol("n");
  for (int i = 0; i < 40; ++i) chain = floor_mod(chain, Expr::symbol("a" + std::to_string(i)));  // minutes, were proofs nested
  CHECK(chain.evaluate({{"x", 1}}) == std::nullopt);
  CHECK(parse_expr(chain.text()) == chain);
}

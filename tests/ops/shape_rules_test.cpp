#include "compiler/ops/shape_rules.h"

#include <doctest/doctest.h>

#include "tests/ops/run_op.h"

using namespace oclc;

TEST_CASE("shapes broadcast as numpy's") {
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  CHECK(broadcast({n, 1, 4}, {t, 1}) == Shape{n, t, 4});
  CHECK(broadcast({}, {2, 3}) == Shape{2, 3});
  CHECK(broadcast({0}, {1}) == Shape{0});
  CHECK(broadcast({n * Expr(2)}, {n + n}) == Shape{n * Expr(2)});
  CHECK(error_of([&] { broadcast({2, 3}, {4}); }) == "wanted shapes that broadcast, found [2, 3] and [4] (3 against 4)");
  CHECK(error_of([&] { broadcast({n}, {t}); }) == "wanted shapes that broadcast, found [N] and [T] (N against T)");
  CHECK(error_of([&] { broadcast({n}, {5}); }) == "wanted shapes that broadcast, found [N] and [5] (N against 5)");
  CHECK(error_of([&] { broadcast({0}, {2}); }) == "wanted shapes that broadcast, found [0] and [2] (0 against 2)");
}

TEST_CASE("axes are normalised") {
  CHECK(normalise_axis(-1, 3) == 2);
  CHECK(normalise_axes({-1, 0}, 3) == Ints{0, 2});
  CHECK(error_of([] { normalise_axis(3, 3); }) == "wanted an axis from -3 to 2, found axis 3");
  CHECK(error_of([] { normalise_axis(0, 0); }) == "wanted an operand with at least one axis, found axis 0");
  CHECK(error_of([] { normalise_axes({1, -2}, 3); }) == "wanted different axes, found axis 1 twice");
}

TEST_CASE("window positions") {
  const Expr h = Expr::symbol("H", 8);
  CHECK(window_positions(224, 7, 2, 1, 3, 3, false) == Expr(112));
  CHECK(window_positions(h, 3, 1, 1, 1, 1, false) == h);
  CHECK(window_positions(h, 3, 1, 2, 2, 2, false) == h);
  CHECK(window_positions(6, 3, 2, 1, 0, 0, false) == Expr(2));
  CHECK(window_positions(6, 3, 2, 1, 0, 0, true) == Expr(3));
  // A last window that would start in the padding behind does not count.
  CHECK(window_positions(4, 1, 2, 1, 0, 1, true) == Expr(2));
  CHECK(error_of([] { window_positions(2, 5, 1, 1, 1, 1, false); }) ==
        "wanted at least 5 elements for a window of 5 with dilation 1, found 2 with padding 1 and 1");
}

TEST_CASE("a window that is cut has one position in data that it overhangs by less than a stride") {
  const Expr h = Expr::symbol("H");
  const auto cut = [](const Expr& size, std::int64_t kernel, std::int64_t stride, std::int64_t before = 0) {
    return window_positions(size, kernel, stride, 1, before, 0, false, true);
  };
  CHECK(cut(1, 2, 2) == Expr(1));
  CHECK(cut(2, 3, 3) == Expr(1));
  CHECK(cut(5, 2, 2) == Expr(2));
  CHECK(cut(h, 2, 2).text() == "max(H / 2, 1)");
  CHECK(cut(cut(h, 2, 2), 2, 2).text() == "max(H / 4, 1)");
  CHECK(cut(h, 2, 2, 1) == floor_div(h + 1, Expr(2)));  // never shorter
  CHECK(cut(h, 2, 1) == h - 1);
  CHECK(error_of([&] { cut(1, 3, 2); }) ==
        "wanted at least 2 elements for a window of 3 with dilation 1, found 1 with padding 0 and 0");
  CHECK(error_of([&] { cut(1, 2, 1); }) ==
        "wanted at least 2 elements for a window of 2 with dilation 1, found 1 with padding 0 and 0");
  CHECK(error_of([&] { window_positions(1, 2, 2, 1, 0, 0, false); }) ==
        "wanted at least 2 elements for a window of 2 with dilation 1, found 1 with padding 0 and 0");
}

TEST_CASE("slices in Python's sense") {
  const auto range = [](const Expr& dim, const Expr& start, const Expr& stop, std::int64_t step) {
    const SliceRange r = slice_range(dim, start, stop, step);
    return r.start.text() + " " + r.size.text();
  };
  const Expr t = Expr::symbol("T");
  CHECK(range(10, 2, 7, 2) == "2 3");
  CHECK(range(10, -3, kSliceEnd, 1) == "7 3");
  CHECK(range(10, 5, 100, 1) == "5 5");
  CHECK(range(10, 8, 3, 1) == "8 0");
  CHECK(range(10, 9, -kSliceEnd, -1) == "9 10");
  CHECK(range(10, -1, -4, -1) == "9 3");
  CHECK(range(10, 100, 0, -3) == "9 3");
  CHECK(range(t, 0, kSliceEnd, 1) == "0 T");
  CHECK(range(t, -1, kSliceEnd, 1) == "T - 1 1");
  CHECK(range(t, 1, kSliceEnd, 1) == "1 T - 1");
  CHECK(range(t, -1, -kSliceEnd, -1) == "T - 1 T");
  CHECK(range(0, 0, kSliceEnd, 1) == "0 0");
  CHECK(error_of([&] { slice_range(10, 0, 5, 0); }) == "wanted a slice step other than 0, found 0");
}

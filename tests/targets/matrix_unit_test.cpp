// Rows of matrix units: fragments hold what an instruction multiplies.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/codegen/text/template_table.h"
#include "compiler/support/error.h"
#include "compiler/targets/target.h"

using namespace oclc;

namespace {

// How often each element of a matrix is held, by all lanes together.
std::map<std::pair<int, int>, int> holders(const Fragment& fragment, int lanes) {
  std::map<std::pair<int, int>, int> found;
  for (int lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < fragment.elements; ++i) ++found[{fragment.row(lane, i), fragment.column(lane, i)}];
  return found;
}

// Each element of rows x columns, each as often as any other.
bool covers(const Fragment& fragment, int lanes, int rows, int columns) {
  const auto found = holders(fragment, lanes);
  const int each = lanes * fragment.elements / (rows * columns);
  return static_cast<int>(found.size()) == rows * columns && std::all_of(found.begin(), found.end(), [&](const auto& f) {
           return f.second == each && f.first.first < rows && f.first.second < columns;
         });
}

}  // namespace

TEST_CASE("the fragments of each unit cover its operands and sums") {
  int with_fragments = 0;
  for (const MatrixUnit& unit : matrix_units()) {
    CAPTURE(unit.name);
    if (unit.operands != UnitOperands::fragments) continue;
    ++with_fragments;
    CHECK(covers(unit.a, unit.lanes, unit.m, unit.k));
    CHECK(covers(unit.b, unit.lanes, unit.k, unit.n));
    CHECK(covers(unit.c, unit.lanes, unit.m, unit.n));
  }
  CHECK(with_fragments >= 1);
}

TEST_CASE("layouts of other vendors' units can be said") {
  // Sub-groups of 16 whose lanes hold a column each, of 8 with two neighbours in k, and of 32 whose halves hold the same.
  CHECK(covers({.elements = 8, .row_of_element = {.modulo = 8}, .column_of_lane = {.modulo = 16}}, 16, 8, 16));
  CHECK(covers({.elements = 16,
                .row_of_element = {.divide = 2, .modulo = 8},
                .column_of_lane = {.modulo = 8, .scale = 2},
                .column_of_element = {.modulo = 2}},
               8, 8, 16));
  CHECK(covers({.elements = 16, .row_of_lane = {.modulo = 16}, .column_of_element = {.modulo = 16}}, 32, 16, 16));
  CHECK(covers({.elements = 8,
                .row_of_lane = {.divide = 16, .modulo = 2},
                .row_of_element = {.modulo = 8, .scale = 2},
                .column_of_lane = {.modulo = 16}},
               32, 16, 16));
}

TEST_CASE("a fragment that leaves elements out does not cover") {
  CHECK_FALSE(covers({.elements = 2, .row_of_lane = {.modulo = 8}, .column_of_element = {.modulo = 2}}, 8, 8, 4));
  CHECK_FALSE(covers({.elements = 4, .row_of_lane = {.modulo = 4}, .column_of_element = {.modulo = 4}}, 8, 8, 4));
}

TEST_CASE("a digit's text leaves out what changes nothing") {
  CHECK(Digit{.divide = 4, .modulo = 8}.text("item", 32) == "item / 4");
  CHECK(Digit{.divide = 4, .modulo = 8}.text("item", 64) == "item / 4 % 8");
  CHECK(Digit{.modulo = 4, .scale = 2}.text("item", 32) == "item % 4 * 2");
  CHECK(Digit{.modulo = 2, .scale = 8}.text("q", 4) == "q % 2 * 8");
  CHECK(Digit{.divide = 2, .modulo = 2, .scale = 4}.text("q", 4) == "q / 2 * 4");
  CHECK(Digit{}.text("q", 4).empty());
}

TEST_CASE("each unit's glue is a file of templates") {
  for (const MatrixUnit& unit : matrix_units()) {
    CAPTURE(unit.name);
    CHECK(std::any_of(template_texts().begin(), template_texts().end(), [&](const auto& t) { return t.name == unit.prelude; }));
    CHECK_FALSE(unit.condition.empty());
  }
}

TEST_CASE("an unknown unit is the compiler's fault") { CHECK_THROWS_AS(matrix_unit("none"), InternalError); }

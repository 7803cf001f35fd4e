#include "compiler/contraction/tiling.h"

#include <doctest/doctest.h>

#include "compiler/targets/target.h"

using namespace oclc;

namespace {

// Work-items of `groups` products of `rows`.
std::int64_t items(const ContractionShape& shape, const ContractionTiles& tiles, const Target& target, std::int64_t groups,
                   std::int64_t rows) {
  return groups * ceil_div(ceil_div(rows, tiles.rows), tiles.row_tiles) *
         ceil_div(ceil_div(shape.columns, tiles.vectors * target.vector_width), tiles.panels);
}

}  // namespace

TEST_CASE("a split for any number of rows leaves no core idle when there are few") {
  for (const std::string name : {"cpu", "cpu-256"}) {
    const Target target = find_target(name);
    for (const std::int64_t columns : {64, 96, 384}) {
      CAPTURE(columns);
      const ContractionShape eight_images{.rows = 8 * 196, .columns = columns, .depth = 64, .row_bytes = 256};
      ContractionShape open = eight_images;
      open.least_groups = 1;
      open.least_rows = 196;
      const ContractionTiles tiles = choose_tiles(open, target), fixed = choose_tiles(eight_images, target);
      CHECK(tiles.rows == fixed.rows);
      CHECK(tiles.vectors == fixed.vectors);
      CHECK(items(open, tiles, target, 1, 196) >= target.compute_units);
      CHECK(items(open, tiles, target, 1, 8 * 196) >= 4 * target.compute_units);
    }
  }
}

TEST_CASE("cores divide the rows where weights are less than what is read and written by rows") {
  const Target target = find_target("cpu");
  const ContractionShape wide_result{.rows = 196, .columns = 576, .depth = 96, .row_bytes = 96 * 4},
      few_rows{.rows = 49, .columns = 960, .depth = 160, .row_bytes = 160 * 4};
  CHECK(!choose_tiles(wide_result, target).rows_fastest);
  CHECK(choose_tiles(few_rows, target).rows_fastest);
}

TEST_CASE("five vectors fill 80 columns where registers suffice") {
  const ContractionShape shape{.rows = 196, .columns = 80, .depth = 480, .row_bytes = 480 * 4};
  CHECK(choose_tiles(shape, find_target("cpu")).vectors == 5);
  CHECK(choose_tiles(shape, find_target("cpu-256")).vectors <= 4);
}

TEST_CASE("work-items whose weights come from memory are longer, since nobody asked for their first panel") {
  const Target target = find_target("cpu");
  ContractionShape shape{.rows = 197, .columns = 3072, .depth = 768, .row_bytes = 768 * 4};
  const ContractionTiles held = choose_tiles(shape, target);
  shape.fresh_columns = true;
  const ContractionTiles fresh = choose_tiles(shape, target);
  CHECK(fresh.panels > held.panels);
  CHECK(items(shape, fresh, target, 1, shape.rows) >= target.compute_units);
}

// Contractions on matrix units of sm_90a: when they are chosen, and their text. What it computes is checked on such devices;
// the branch for others is checked with every contraction for the target h200.
#include "compiler/codegen/contraction_sm90a.h"

#include <doctest/doctest.h>

#include "compiler/codegen/codegen.h"

using namespace oclc;

namespace {

std::optional<Sm90aTiles> choice(const GpuProduct& product, const char* target) {
  const Target& row = find_target(target);
  return choose_sm90a_tiles(product, choose_gpu_tiles(product, row), row);
}

}  // namespace

TEST_CASE("matrix units are taken where a target has them and a product is worth it") {
  const GpuProduct large{1, 4096, 4096, 4096}, narrow{1, 4096, 64, 576}, tiny{1, 1, 64, 16};
  REQUIRE(choice(large, "h200"));
  CHECK(choice(large, "h200")->columns == 128);
  REQUIRE(choice(narrow, "h200"));
  CHECK(choice(narrow, "h200")->columns == 64);
  CHECK(!choice(tiny, "h200"));
  CHECK(!choice(large, "gpu"));
  const Sm90aTiles tiles = *choice(large, "h200");
  CHECK(tiles.portable.rows == tiles.warpgroups * 64);
  CHECK(tiles.portable.columns == tiles.columns);
  CHECK(tiles.portable.items() <= tiles.items());
}

TEST_CASE("the body for matrix units has its parameters and holes filled in, and fits the local memory of a compute unit") {
  for (const GpuProduct& product : {GpuProduct{1, 4096, 4096, 4096}, {1, 4096, 64, 576}, {1, 300, 300, 512}}) {
    const auto tiles = choice(product, "h200");
    if (!tiles) continue;
    TemplateValues values;
    values.parameters = {{"M", "300"}, {"N", "260"}, {"K", "70"}, {"BM", "64"}, {"SURPLUS", "1"}};
    values.holes = {{"EPILOGUE_VALUE", "v = v + 1.0f;\n"}};
    const std::string body = sm90a_tile_body(*tiles, values);
    CHECK(body.find("v = v + 1.0f;") != std::string::npos);
    CHECK(body.find("//@hole") == std::string::npos);
    for (const char* macro : {"MULTIPL", "JOIN", "STAGE", "PLACE", "KB", "BK", "TURNS"})
      CHECK(body.find(macro) == std::string::npos);
    const std::string helpers = prelude_for(body);
    for (const char* name : {"oclc_barrier_wait", "oclc_matrix_load", "oclc_wgmma_begin", "oclc_publish"})
      CHECK(helpers.find(name) != std::string::npos);
    CHECK(std::stoll(sm90a_local_floats(*tiles, values)) * 4 * tiles->groups_of_unit <= 227 << 10);
  }
}

// Contractions on matrix units of sm_90a: when they are chosen, and their text. What it computes is checked on such devices;
// the branch for others is checked with every contraction for the target h200.
#include "compiler/codegen/contraction/gpu/contraction_sm90a.h"

#include <doctest/doctest.h>

#include <cmath>
#include <regex>

#include "compiler/codegen/codegen.h"

using namespace oclc;

namespace {

std::optional<Sm90aTiles> choice(const GpuProduct& product, const char* target) {
  const Target& row = find_target(target);
  return choose_sm90a_tiles(product, choose_gpu_tiles(product, row), row);
}

// Of `oclc_registers_N()`, in the order of the text.
std::vector<int> registers_in(const std::string& body) {
  static const std::regex call("oclc_registers_([0-9]+)\\(\\)");
  std::vector<int> numbers;
  for (std::sregex_iterator at(body.begin(), body.end(), call), end; at != end; ++at) numbers.push_back(std::stoi((*at)[1]));
  return numbers;
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
    for (const char* macro : {"MULTIPL", "JOIN", "STAGE", "PLACE", "KB", "BK", "TURNS"})
      CHECK(body.find(macro) == std::string::npos);
    const std::string helpers = prelude_for(body);
    for (const char* name : {"oclc_barrier_wait", "oclc_matrix_load", "oclc_wgmma_begin", "oclc_publish"})
      CHECK(helpers.find(name) != std::string::npos);
    CHECK(std::stoll(sm90a_macro(*tiles, "SPACE", values)) * 4 * tiles->groups_of_unit <= 227 << 10);
  }
}

TEST_CASE("tiles for any size suit few rows and many") {
  const Target& target = find_target("h200");
  // 1024 terms of an image's 196 positions, and 256 columns.
  const auto product = [](std::int64_t images) { return GpuProduct{1, 196 * images, 256, 1024, true}; };
  const auto best = [&](const GpuProduct& p) { return choose_sm90a_tiles(p, choose_gpu_tiles(p, target), target).value(); };
  const Sm90aTiles few = best(product(1)), many = best(product(128)), any = best(product_of_sizes(true, product));
  const auto seconds = [&](std::int64_t images, const Sm90aTiles& tiles) {
    return sm90a_seconds(product(images), tiles, target);
  };
  CHECK(few.tile_rows() * few.columns < many.tile_rows() * many.columns);
  // Neither the best of the one nor of the other is better on both.
  const auto mean = [&](const Sm90aTiles& tiles) { return sm90a_seconds(product_of_sizes(true, product), tiles, target); };
  CHECK(mean(any) <= mean(few));
  CHECK(mean(any) <= mean(many));
  const double launch = 4e-6;
  CHECK(mean(any) + launch ==
        doctest::Approx(std::cbrt((seconds(1, any) + launch) * (seconds(16, any) + launch) * (seconds(128, any) + launch))));
}

TEST_CASE("tiles of rounded products are as wide as the matrix unit can keep sums, unless columns are scaled in every step") {
  Target target = find_target("h200");
  target.precision.products = Products::rounded;
  const auto tiles = [&](GpuProduct product) { return choose_sm90a_tiles(product, choose_gpu_tiles(product, target), target); };
  GpuProduct large{1, 4096, 4096, 4096, true};
  REQUIRE(tiles(large));
  CHECK(tiles(large)->columns == 256);
  CHECK(tiles(large)->tile_rows() == 128);
  // 100 tiles of 192 columns, of which each compute unit has one, take less long than 75 of 256.
  CHECK(tiles({1, 3152, 768, 768, true})->columns == 192);
  large.scaled_steps = true;
  CHECK(tiles(large)->columns == 128);
  target.precision.products = Products::split;
  large.scaled_steps = false;
  CHECK(tiles(large)->columns == 128);
}

TEST_CASE("three warpgroups share a tile of parts where that leaves fewer compute units idle") {
  // 264 tiles of 192 rows are two for each compute unit, as 196 of 256 rows are, which take a third longer.
  const GpuProduct product{1, 12544, 512, 4608, true};
  const auto tiles = choice(product, "h200");
  REQUIRE(tiles);
  CHECK(tiles->tile_rows() == 192);
  CHECK(tiles->items() == 512);
  CHECK(tiles->portable.items() <= tiles->items());
  TemplateValues values;
  values.parameters = {{"M", "12544"}, {"N", "512"}, {"K", "4608"}, {"SPLIT", "1"}};
  const std::string body = sm90a_tile_body(*tiles, values);
  // Work-items that load give up the registers that those that multiply take: 65536 for all of a compute unit.
  const std::vector<int> registers = registers_in(body);
  REQUIRE(registers.size() == 2);
  CHECK(registers[0] * 128 + registers[1] * (tiles->items() - 128) == 65536);
  CHECK(std::stoll(sm90a_macro(*tiles, "SPACE", values)) * 4 <= 227 << 10);
}

TEST_CASE("exponents of the next rows are found during a product whose columns are scaled in every step") {
  const auto early = [](bool scaled, const char* along_k) {
    GpuProduct product{1, 4097, 260, 2049, true};
    product.scaled_steps = scaled;
    const auto tiles = choice(product, "h200");
    REQUIRE(tiles);
    CHECK(tiles->warpgroups == 2);
    TemplateValues values;
    values.parameters = {{"M", "4097"}, {"N", "260"}, {"K", "2049"}, {"SPLIT", "1"}, {"A_ALONG_K", along_k}};
    if (scaled) values.parameters["STEP_SCALES"] = "1";
    const std::string body = sm90a_tile_body(*tiles, values);
    const auto exponents = body.find("uint exponent0 = oclc_largest_exponent(");
    REQUIRE(exponents != std::string::npos);
    return exponents < body.find("for (int step = 0; step < ", body.find("float out["));
  };
  CHECK(early(true, "1"));
  CHECK(!early(true, "0"));
  CHECK(!early(false, "1"));
}

TEST_CASE("rounded products stay in the accumulator, which is scaled down when a row grows") {
  Target target = find_target("h200");
  target.precision.products = Products::rounded;
  for (const bool scaled_steps : {false, true}) {
    GpuProduct product{1, 4096, 4096, 4096, true};
    product.scaled_steps = scaled_steps;
    const auto tiles = choose_sm90a_tiles(product, choose_gpu_tiles(product, target), target);
    REQUIRE(tiles);
    TemplateValues values;
    values.parameters = {{"M", "300"}, {"N", "260"},   {"K", "70"},
                         {"BM", "64"}, {"SPLIT", "0"}, {"STEP_SCALES", scaled_steps ? "1" : "0"}};
    const std::string body = sm90a_tile_body(*tiles, values);
    CHECK(sm90a_macro(*tiles, "KEEPS", values) == (scaled_steps ? "0" : "1"));
    CHECK((body.find("oclc_rescale") != std::string::npos) == !scaled_steps);
    CHECK(tiles->columns == (scaled_steps ? 128 : 256));
    for (const char* macro : {"MULTIPL", "KEEPS", "HEADROOM", "PASS"}) CHECK(body.find(macro) == std::string::npos);
    CHECK(std::stoll(sm90a_macro(*tiles, "SPACE", values)) * 4 * tiles->groups_of_unit <= 227 << 10);
  }
}

TEST_CASE(
    "bodies whose loads round what they load multiply from local memory; groups that share a tile count tickets and shares") {
  Target target = find_target("h200");
  target.precision.products = Products::rounded;
  const GpuProduct product = GpuProduct{1, 784, 512, 4608, true}.shared_by(6);
  CHECK(product.groups == 6);
  CHECK(product.depth == 768);
  const auto chosen = choose_sm90a_tiles(product, choose_gpu_tiles(product, target), target);
  REQUIRE(chosen);
  for (const std::int64_t taps : {1, 3}) {
    const Sm90aTiles tiles = rounded_ahead(*chosen, taps, product, 28 * (28 + taps - 1), target);
    CHECK(tiles.own_rows() == tiles.tile_rows() - taps + 1);
    TemplateValues values;
    values.parameters = {{"M", "784"},   {"N", "512"},    {"K", "512"},
                         {"TAPS", "9"},  {"MASKED", "1"}, {"BM", "64"},
                         {"SPLIT", "0"}, {"WIDTH", "28"}, {"LINE", std::to_string(taps)}};
    const std::string alone = sm90a_tile_body(tiles, values);
    // A line of one tap has no loop over them.
    CHECK((alone.find("tap < " + std::to_string(taps)) != std::string::npos) == (taps > 1));
    values.parameters["SHARES"] = "6";
    const std::string body = sm90a_tile_body(tiles, values);
    for (const std::string* text : {&alone, &body}) CHECK((text->find("ticket") != std::string::npos) == (text == &body));
    for (const char* macro :
         {"TURNS", "TICKETS", "SHARES", "WARPS", "VECTORS", "STEPS", "PADDED", "MULTIPL", "SLOT", "HEADROOM"})
      CHECK(body.find(macro) == std::string::npos);
    const std::string helpers = prelude_for(body);
    for (const char* name : {"uint oclc_next_of(", "void oclc_hand_in(", "void oclc_wait_for(", "uint oclc_loaders_any("})
      CHECK(helpers.find(name) != std::string::npos);
    // Lines that are as long as two taps more.
    const std::int64_t rows = 28 * (28 + taps - 1), row_tiles = (rows + tiles.own_rows() - 1) / tiles.own_rows(),
                       column_tiles = (512 + tiles.columns - 1) / tiles.columns;
    CHECK(std::stoll(sm90a_macro(tiles, "PARTS_SPACE", values)) ==
          row_tiles * column_tiles * 6 * tiles.tile_rows() * tiles.columns);
    CHECK(std::stoll(sm90a_macro(tiles, "SPACE", values)) * 4 * tiles.groups_of_unit <= 227 << 10);
  }
}

TEST_CASE("tiles of one warpgroup load the rows of later taps as well where that saves a round of tiles") {
  Target target = find_target("h200");
  target.precision.products = Products::rounded;
  const auto tiles_of = [&](std::int64_t lines, std::optional<std::int64_t> rows) {
    const GpuProduct product{1, lines * 224, 64, 576, true};
    const auto chosen = choose_sm90a_tiles(product, choose_gpu_tiles(product, target), target);
    REQUIRE(chosen);
    REQUIRE(chosen->warpgroups == 1);
    return rounded_ahead(*chosen, 3, product, rows, target);
  };
  // 264 groups run at once: 817 tiles of 62 rows, or 791 of 64.
  const Sm90aTiles fewer = tiles_of(224, 224 * 226);
  CHECK(fewer.own_rows() == 64);
  TemplateValues values;
  values.parameters = {{"M", "50176"},  {"N", "64"},    {"K", "64"},     {"TAPS", "9"},
                       {"MASKED", "1"}, {"SPLIT", "0"}, {"WIDTH", "224"}};
  CHECK(std::stoll(sm90a_macro(fewer, "LOADED_ROWS", values)) == 66);
  CHECK(std::stoll(sm90a_macro(fewer, "TILES", values)) == 791);
  // 875 and 847 tiles are four rounds both.
  CHECK(tiles_of(240, 240 * 226).own_rows() == 62);
  CHECK(tiles_of(224, std::nullopt).own_rows() == 62);
}

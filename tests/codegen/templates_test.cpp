// Templates compile alone; their expansion, the prelude's pieces and the choice of tiles.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/text/template_table.h"
#include "compiler/codegen/text/template_text.h"
#include "compiler/contraction/tiling.h"
#include "compiler/support/error.h"
#include "tests/ops/opencl_host.h"

using namespace oclc;

namespace {

constexpr const char* kNoMatrixUnit = R"(
void oclc_mma_first(float* d, const uint* a, uint b0, uint b1) {}
void oclc_mma(float* d, const uint* a, uint b0, uint b1) {}
#define oclc_swap_lanes(to, from, lanes) to = from
)";

}  // namespace

TEST_CASE("every template compiles alone with its defaults") {
  const OpenClHost host;
  const HostTensor x(DType::f32, {16});
  REQUIRE(template_texts().size() >= 6);
  for (const TemplateText& row : template_texts()) {
    CAPTURE(row.name);
    std::string source(row.text);
    // Inline PTX is for no compiler at hand: its names are declared alone.
    if (source.find("oclc_mma(") != std::string::npos) source = std::string(kNoMatrixUnit) + source;
    if ((row.name.starts_with("contraction") || row.name.starts_with("attention")) && row.name.ends_with("_amx"))
      source = prelude_for(source + " oclc_tiles_multiply_6 oclc_split_6 oclc_parts_6 oclc_digits_multiply") + source;
    if (row.name == "lanes") source = prelude_for("oclc_max oclc_min oclc_store") + source;
    if (row.name == "contraction_unit_gpu")
      source = "#define OCLC_UNITS_EMULATED\n" +
               prelude_for("oclc_xmx_a oclc_xmx_bf16 oclc_exchange_floats oclc_from_bf16 oclc_to_bf16") + source;
    if (row.name.starts_with("matrix_"))
      source = "#define OCLC_UNITS_EMULATED\n" + prelude_for("oclc_from_bf16 oclc_from_f16") + source;
    if (row.name == "half") source = prelude_for("oclc_store") + source;
    if (row.name == "tiles_amx") source = prelude_for("oclc_store oclc_to_bf16") + source;
    if (row.name == "digits_amx") source = prelude_for("oclc_tiles_share") + source;
    if (row.name.ends_with("_cpu") || row.name == "contraction_row_gpu") source = prelude_for(source) + source;
    source +=
        "\n__kernel void run(__global const float* x, __global float* y) { y[get_global_id(0)] = x[get_global_id(0)]; }\n";
    CHECK_NOTHROW(host.run(source, {x}, HostTensor(DType::f32, {16}), 16));
  }
}

// Local memory is what other kernels left there: denormal numbers would make products slow that nobody uses.
TEST_CASE("Winograd's surplus rows do not read what lies in local memory") {
  const OpenClHost host;
  const auto is_winograd = [](const TemplateText& row) { return row.name == "contraction_winograd_cpu"; };
  const auto row = std::find_if(template_texts().begin(), template_texts().end(), is_winograd);
  REQUIRE(row != template_texts().end());
  // 25 tiles: the second group has one of the eight rows of its register tile.
  std::string source =
      "#define K 16\n#define N 16\n#define NV 1\n#define OH 10\n#define OW 10\n#define Y_LAST 10\n#define X_LAST 10\n"
      "#define A_Y (12 * K)\n" +
      std::string(row->text) +
      "__kernel void run(__global const float* a, __global const float* b, __global const float* zero, __global float* c) {\n"
      "  __local float space[LOCAL_FLOATS];\n"
      "  for (int i = 0; i < LOCAL_FLOATS; ++i) space[i] = NAN;\n"
      "  contraction_winograd_tile(a, b, zero, zero, c, 1, space);\n"
      "  for (int i = 0; i < POINTS * MR * PW; ++i)\n"
      "    c[i] = isnan(space[POINTS * TBR * V_PITCH + i / (MR * PW) * (TBR * PW) + i % (MR * PW)]);\n}\n";
  source = prelude_for(source) + source;
  const HostTensor image(DType::f32, {12 * 12 * 16}), weights(DType::f32, {16 * 16 * 16}), zero(DType::f32, {16}),
      found = host.run(source, {image, weights, zero}, HostTensor(DType::f32, {16 * 8 * 16}), 1);
  for (std::int64_t i = 0; i < found.elements(); ++i) REQUIRE(found.at(i) == 0);
}

TEST_CASE("a tile's body has its parameters and holes filled in") {
  TemplateValues values;
  values.parameters = {{"M", "35"}, {"N", "64"}, {"K", "20"}, {"MR", "5"}, {"NV", "2"}, {"VW", "8"}};
  values.holes = {{"EPILOGUE", "v = v + 1.0f;\n"}};
  const std::string body = expand_tile_body("contraction_cpu", values);
  CHECK(body.find("v = v + 1.0f;") != std::string::npos);
  CHECK(body.find("float8 acc[5][2]") != std::string::npos);
  CHECK(body.find("//@hole") == std::string::npos);
  for (const char* macro : {"PANELS", "ROW_BLOCKS", "JOIN", "PW", "MR"}) CHECK(body.find(macro) == std::string::npos);
  CHECK(expand_macro("contraction_cpu", "PW", values) == "16");
  CHECK(expand_macro("contraction_cpu", "ROW_TILES", values) == "7");
  CHECK_THROWS_AS(expand_tile_body("no_such_template", values), InternalError);
}

TEST_CASE("the prelude holds what a source calls, and what that calls, and no more") {
  CHECK(prelude_for("y[0] = x[0] + 1;") == "");
  const std::string lanes = prelude_for("s = oclc_lanes_max(v);");
  CHECK(lanes.find("oclc_lanes_max(float4") != std::string::npos);
  CHECK(lanes.find("oclc_max(") < lanes.find("oclc_lanes_max("));
  CHECK(lanes.find("oclc_erf") == std::string::npos);
  CHECK(prelude_for("my_oclc_erf(x)") == "");
}

TEST_CASE("tiles fit the registers and cover the product") {
  for (const char* name : {"cpu", "cpu-256", "cpu-128"}) {
    const Target& target = find_target(name);
    for (const std::int64_t rows : {1, 3, 49, 196, 12544}) {
      for (const std::int64_t columns : {1, 17, 64, 1000}) {
        const ContractionShape shape{1, rows, columns, 256, 1024};
        const ContractionTiles t = choose_tiles(shape, target);
        CHECK(t.rows * t.vectors + t.vectors + 1 <= target.vector_registers);
        CHECK(t.rows >= 1);
        CHECK(t.rows <= 12);
        CHECK(t.row_tiles >= 1);
        CHECK(t.panels >= 1);
        // No work-item is without work.
        CHECK((t.row_tiles - 1) * t.rows < rows);
        CHECK((t.panels - 1) * t.vectors * target.vector_width < columns);
        if (rows == 1) CHECK(t.rows == 1);
      }
    }
  }
}

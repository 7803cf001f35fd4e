#include "compiler/codegen/contraction/amx/contraction_chunks_amx.h"

#include <fmt/format.h>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/panel_copy.h"
#include "compiler/codegen/contraction/problem_of.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/contraction/cpu/amx.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr int kChunkFloats = 16;  // of a vector
constexpr std::int64_t kChunkPanel = 32;
// B_ELEMENTS: as `v` the vector of B's columns at (tap, k, n).
std::string elements_of_b(const ContractionView& view, const Kernel& loads) {
  Emitter e(loads, view.mode());
  e.set_vector_axis(view.column_axis().name, kChunkFloats);
  e.open("", axis_names(view.kernel()));
  for (const std::string& line : view.tap_coordinates()) e.line(line);
  e.line(fmt::format("const {} {} = k;", view.index_type(), view.inner_axis().name));
  if (view.column_axis().name != "n") e.line(fmt::format("const {} {} = n;", view.index_type(), view.column_axis().name));
  e.line(fmt::format("v = {};", e.vector_value(view.roles().b)));
  e.close();
  return e.text();
}

}  // namespace

GeneratedKernel emit_amx_chunks(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                                const Target& target) {
  const auto* tiles = &std::get<AmxPairTiles>(choice.tiles);
  const Kernel b = part_for(view.kernel(), view.roles().b);
  const auto product = amx_pair_product(problem_of(view, buffers));
  OCLC_CHECK(product, "operands that vectors copy");

  TileKernel tile;
  tile.template_name = "contraction_chunks_amx";
  view.fill_sizes(tile.values);
  const bool one_chunk = !product->any_terms && tiles->chunk >= product->steps();
  const std::pair<const char*, std::int64_t> numbers[] = {{"PRODUCTS", target.precision.bf16_products},
                                                          {"ROWS_INNERMOST", product->turned_rows},
                                                          {"MT", tiles->row_blocks},
                                                          {"NP", tiles->panels},
                                                          {"CHUNK", tiles->chunk},
                                                          {"ONE_CHUNK", one_chunk}};
  for (const auto& [name, number] : numbers) tile.values.parameters[name] = std::to_string(number);
  auto& holes = tile.values.holes;
  holes["GROUP"] = fmt::format("{}\n", fmt::join(view.group_coordinates(), "\n"));
  const Axis& lanes_of_a = product->turned_rows ? view.axis(view.roles().m[0]) : view.inner_axis();
  holes["A_ELEMENTS"] = elements_of_a(view, lanes_of_a.name, kChunkFloats);
  if (product->turned_rows) {
    tile.values.parameters["PV"] = std::to_string(kChunkFloats);
    holes["A_LAST_ROWS"] = last_rows_of_a(view);
  }
  if (takes_vectors(b, view.column_axis(), kChunkFloats) && view.columns().value() % kChunkFloats == 0) {
    tile.values.parameters["B_COLUMNS"] = "1";
    holes["B_ELEMENTS"] = elements_of_b(view, b);
    holes["PACK_B"] = "";
  } else {
    holes["PACK_B"] = copy_of_panels(view, kChunkFloats, kChunkPanel);
  }
  if (!one_chunk && ask_for_lines(view, product->turned_rows, kChunkFloats, tile.values))
    tile.values.parameters["CHUNK_AHEAD"] = "1";
  if (const std::string ahead = epilogue_ahead(view, kChunkFloats); !ahead.empty()) {
    tile.values.parameters["EPILOGUE_AHEAD"] = "1";
    holes["NEXT_RESULTS"] = ahead;
  }
  holes["EPILOGUE"] = contraction_epilogue(view, kChunkFloats, false);
  holes["STORE"] = "";
  holes["C_ROW"] = "";
  tile.groups = view.groups() * ceil_div(view.rows(), Expr(32 * tiles->row_blocks)) *
                ceil_div(view.columns(), Expr(kChunkPanel * tiles->panels));
  tile.schedule =
      fmt::format("template {}, {} products, {} x {} blocks of 32 x 32 a group, {} terms at a time", tile.template_name,
                  target.precision.bf16_products, tiles->row_blocks, tiles->panels, 32 * tiles->chunk);
  tile.local_name = "space";
  tile.local_macro = "LOCAL_FLOATS";
  GeneratedKernel g = assemble(view.kernel(), std::move(tile));
  g.amx = true;
  return g;
}

}  // namespace oclc

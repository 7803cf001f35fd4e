#include "compiler/codegen/contraction/amx/contraction_chunks_amx.h"

#include <fmt/format.h>

#include "compiler/codegen/contraction/chunk_choice.h"
#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/panel_copy.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/contraction/amx_tiles.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

constexpr int kChunkFloats = 16;  // of a vector
constexpr std::int64_t kChunkPanel = 32;
// Cycles of a nanosecond.
constexpr double kClock = 3;

// The product where vectors copy both operands: of A's rows, if these are neighbours, or of its terms.
std::optional<AmxPairProduct> pair_product(const ContractionView& view, const Kernel& a, const Kernel& b) {
  const bool by_columns = takes_vectors(b, view.column_axis(), kChunkFloats);
  if (!by_columns && !takes_vectors(b, view.inner_axis(), kChunkFloats)) return std::nullopt;
  AmxPairProduct p;
  if (view.roles().m.size() == 1) {
    const Axis& row = view.axis(view.roles().m[0]);
    p.turned_rows = has_neighbours(a, row) && takes_vectors(a, row, kChunkFloats);
  }
  if (!p.turned_rows && !takes_vectors(a, view.inner_axis(), kChunkFloats)) return std::nullopt;
  const auto seconds = [](const Kernel& loads) { return cycles_of_vector(loads) * 2 * kChunkPanel / kClock * 1e-9; };
  p.groups = typical_extent(view.groups());
  p.rows = typical_extent(view.rows());
  p.columns = typical_extent(view.columns());
  p.taps = view.taps();
  p.inner = typical_extent(view.inner());
  p.any_terms = !view.inner().is_constant();
  p.copy_rows = seconds(a);
  p.copy_columns = seconds(b) * (by_columns ? 1 : 2);
  return p;
}

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

std::optional<GeneratedKernel> generate_chunks_amx(const ContractionView& view, const Target& target) {
  if (!target.multiplies_tiles()) return std::nullopt;
  const Kernel a = part_for(view.kernel(), view.roles().a), b = part_for(view.kernel(), view.roles().b);
  const auto product = pair_product(view, a, b);
  if (!product) return std::nullopt;
  const auto tiles = choose_amx_pair(*product, target);
  if (!tiles) return std::nullopt;

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

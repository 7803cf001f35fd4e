#include "compiler/codegen/contraction/cpu/contraction_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/pack.h"
#include "compiler/codegen/contraction/panel_copy.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/codegen/text/half.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/contraction/cpu/chunks.h"
#include "compiler/ir/division.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

class ChunkCode {
 public:
  ChunkCode(const ContractionView& view, const ChunkTiles& tiles, const Target& target)
      : view_(view), tiles_(tiles), target_(target), width_(target.vector_width), kernel_(view.kernel()) {}

  // A is packed [row tile][term][row], surplus rows 0.
  void pack_left(const PackedOperand& where, const Buffer& source) {
    constants_.push_back(
        own_constant("weights", source.name + ".packed",
                     pack_panels(source.constant, where, 1, view_.rows().value(), view_.inner().value(), tiles_.rows)));
    const ScalarNode& a = view_.a();
    kernel_.operands[static_cast<std::size_t>(a.operand)].replaced = !view_.is_read_elsewhere(a);
    values_.holes["A_TILE"] = "const __global float* p = weights + (size_t)m0 * K + k0 * MR;\n";
  }

  GeneratedKernel run() {
    fill_parameters();
    values_.holes["GROUP"] = fmt::format("{}\n", fmt::join(view_.group_coordinates(), "\n"));
    if (tiles_.in_place) values_.holes["ROW_STATE"] = *row_pointers(view_);
    if (tiles_.constant_a) return finish();
    const Axis& lanes_of_a = tiles_.rows_innermost ? view_.axis(view_.roles().m[0]) : view_.inner_axis();
    values_.holes["A_ELEMENTS"] = elements_of_a(view_, lanes_of_a.name, tiles_.lanes);
    if (tiles_.rows_innermost) values_.holes["A_LAST_ROWS"] = last_rows_of_a(view_);
    ask_ahead();
    return finish();
  }

 private:
  GeneratedKernel finish() {
    values_.holes["PACK_B"] = copy_of_panels(view_, width_, panel_width(), tiles_.terms);
    values_.holes["EPILOGUE"] = contraction_epilogue(view_, width_, false);
    values_.holes["STORE"] = "";
    values_.holes["C_ROW"] = "";
    TileKernel tile;
    tile.template_name = "contraction_chunks_cpu";
    tile.groups = view_.groups() * ceil_div(ceil_div(view_.rows(), Expr(tiles_.rows)), Expr(tiles_.row_tiles)) *
                  ceil_div(ceil_div(view_.columns(), Expr(panel_width())), Expr(tiles_.panels));
    tile.schedule = fmt::format("template {}, tile {} x {}, {} x {} tiles a group, {} terms at a time", tile.template_name,
                                tiles_.rows, panel_width(), tiles_.row_tiles, tiles_.panels, tiles_.terms * tiles_.taps);
    tile.local_name = "block";
    tile.local_macro = "BLOCK_FLOATS";
    tile.values = std::move(values_);
    tile.constants = std::move(constants_);
    return assemble(kernel_, std::move(tile));
  }

  std::int64_t panel_width() const { return std::int64_t{tiles_.vectors} * width_; }

  bool one_chunk() const {
    return view_.inner().is_constant() && tiles_.terms >= view_.inner().value() && tiles_.taps >= view_.taps();
  }

  void fill_parameters() {
    view_.fill_sizes(values_);
    auto& p = values_.parameters;
    const std::pair<const char*, std::int64_t> numbers[] = {
        {"VW", width_},
        {"MR", tiles_.rows},
        {"NV", tiles_.vectors},
        {"MT", tiles_.row_tiles},
        {"NP", tiles_.panels},
        {"KC", tiles_.terms},
        {"TC", tiles_.taps},
        {"PV", tiles_.lanes},
        {"ROWS_INNERMOST", tiles_.rows_innermost},
        {"A_IN_PLACE", tiles_.in_place},
        {"A_CONSTANT", tiles_.constant_a},
        {"ONE_CHUNK", one_chunk()},
        {"EPILOGUE_UNROLL", has_cheap_epilogue(view_) ? tiles_.rows : 1},
        {"AT", tiles_.copied_tiles},
        {"BR", std::lcm(tiles_.rows, tiles_.lanes)},
        {"CHAIN", std::min(longest_chain_of_chunk(target_), tiles_.terms * tiles_.taps)}};
    for (const auto& [name, value] : numbers) p[name] = std::to_string(value);
  }

  // Both operands' lines of the next chunk. Taps of an image share lines, which are not asked for once each.
  void ask_ahead() {
    const bool by_terms = !takes_vectors(part_for(view_.kernel(), view_.roles().b), view_.column_axis(), width_),
               shares_lines = (by_terms || !tiles_.rows_innermost) && view_.taps() > 1;
    if (!one_chunk() && !shares_lines && next_chunk_fits() && ask_for_lines(view_, tiles_.rows_innermost, width_, values_))
      values_.parameters["CHUNK_AHEAD"] = "1";
  }

  // Operands that are computed from several tensors have so many lines that they push out what is multiplied.
  bool next_chunk_fits() const {
    const auto tensors = [&](NodeId root) {
      const Kernel loads = part_for(view_.kernel(), root);
      return std::count_if(loads.nodes.begin(), loads.nodes.end(), [&](const ScalarNode& n) {
        return n.kind == ScalarNode::Kind::load && n.index.uses(view_.inner_axis().name);
      });
    };
    const std::int64_t chunk = tiles_.terms * tiles_.taps, rows = tiles_.row_tiles * tiles_.rows,
                       columns = tiles_.panels * panel_width(),
                       here = chunk * (tiles_.copied_tiles * tiles_.rows + columns) + rows * columns,
                       next = chunk * (rows * tensors(view_.roles().a) + columns * tensors(view_.roles().b));
    return static_cast<double>((here + next) * 4) <= cost::kChunkCrowded * static_cast<double>(target_.l2_bytes);
  }

  const ContractionView& view_;
  const ChunkTiles& tiles_;
  const Target& target_;
  const int width_;
  Kernel kernel_;  // with the operand marked that packed tiles replace
  std::vector<OwnConstant> constants_;
  TemplateValues values_;
};

}  // namespace

GeneratedKernel emit_chunks(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                            const Target& target) {
  const auto& tiles = std::get<ChunkTiles>(choice.tiles);
  ChunkCode code(view, tiles, target);
  if (tiles.constant_a)
    code.pack_left(constant_a_layout(view, buffers).value(),
                   buffers[static_cast<std::size_t>(view.operand_of(view.a()).buffer)]);
  return code.run();
}

}  // namespace oclc

#include "compiler/codegen/contraction/cpu/contraction.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/ir/typical.h"

namespace oclc {
namespace {

// Rows that meet a panel of weights as it comes from memory.
constexpr std::int64_t kOnceRows = 3;
// Rows whose results are near enough for the processor's tables of pages, and second-level caches that B may fill if it is read
// for each of them.
constexpr std::int64_t kNearRows = 48, kNearCaches = 8;

class ContractionCode {
 public:
  ContractionCode(const ContractionView& view, const OperandReads& reads, StrategyId strategy,
                  const std::vector<Buffer>& buffers, const Target& target)
      : view_(view), reads_(reads), strategy_(strategy), buffers_(buffers), target_(target), kernel_(view.kernel()) {}

  GeneratedKernel run() {
    if (reads_.constant_b) pack_constant();
    if (auto zeros = padding_zeros(view_, reads_)) constants_.push_back(own_constant("zero", "zero", std::move(*zeros)));
    fill_sizes();
    fill_chains();
    fill_steps();
    fill_operands(view_, reads_, target_, values_);
    values_.holes["EPILOGUE"] = contraction_epilogue(view_, target_.vector_width, false);
    fill_near_rows();
    values_.holes["STORE"] = "";
    values_.holes["C_ROW"] = "";
    return assemble_template();
  }

 private:
  void pack_constant() {
    const ScalarNode& b = view_.b();
    const Buffer& source = buffers_[static_cast<std::size_t>(view_.operand_of(b).buffer)];
    constants_.push_back(own_constant("weights", source.name + ".packed",
                                      pack_panels(source.constant, *reads_.constant_b, view_.groups().value(),
                                                  view_.columns().value(), view_.inner().value(), reads_.panel_width)));
    kernel_.operands[static_cast<std::size_t>(b.operand)].replaced = !view_.is_read_elsewhere(b);
  }

  void fill_sizes() {
    view_.fill_sizes(values_);
    auto& p = values_.parameters;
    const ContractionTiles& tiles = reads_.tiles;
    p["VW"] = std::to_string(target_.vector_width);
    p["MR"] = std::to_string(tiles.rows);
    p["NV"] = std::to_string(tiles.vectors);
    p["MT"] = std::to_string(tiles.row_tiles);
    p["NP"] = std::to_string(tiles.panels);
    // A constant B's surplus columns are zeros, the upper half of their sums as well.
    const bool half = reads_.constant_b && reads_.local_copy != LocalCopy::b && view_.columns().is_constant() &&
                      half_ends_panel(view_.columns().value(), tiles.vectors, target_);
    p["HALF_LAST"] = half ? "1" : "0";
    p["ROWS_FASTEST"] = tiles.rows_fastest ? "1" : "0";
    if (reads_.constant_b) {
      const std::int64_t bytes = typical_extent(view_.inner()) * view_.taps() * typical_extent(view_.columns()) * 4;
      const bool few = !target_.has.software_prefetch;
      const bool next =
          reads_.local_copy == LocalCopy::none && tiles.row_tiles > 1 && tiles.panels > 1 && prefetches_panel(target_, bytes);
      // A few rows take a panel once, from its beginning to its end, as the processor itself guesses.
      const bool once = few && typical_extent(view_.rows()) <= kOnceRows;
      if (next) p["NEXT"] = std::to_string(ceil_div(reads_.panel_width, tiles.row_tiles));
      if (!few || !(next || once)) {
        const PrefetchDistance ahead = prefetch_rows(target_, typical_extent(view_.rows()), reads_.panel_width);
        p["PREFETCH_DISTANCE"] = std::to_string(ahead.later);
        p["FIRST_PREFETCH_DISTANCE"] = std::to_string(ahead.first);
      }
    }
    p["EPILOGUE_UNROLL"] = has_cheap_epilogue(view_) ? p["MR"] : "1";
  }

  // Rows of a copied block that meet all panels before the next rows do, where B is soon read again.
  void fill_near_rows() {
    if (reads_.local_copy != LocalCopy::a || reads_.copies_panels) return;
    const ContractionTiles& tiles = reads_.tiles;
    if (typical_extent(view_.inner()) * view_.taps() * tiles.panels * reads_.panel_width * 4 > kNearCaches * target_.l2_bytes)
      return;
    values_.parameters["RT"] = std::to_string(ceil_div(kNearRows, std::int64_t{tiles.rows}));
    const std::string ahead = epilogue_ahead(view_, target_.vector_width);
    if (ahead.empty()) return;
    values_.parameters["EPILOGUE_AHEAD"] = "1";
    values_.holes["NEXT_RESULTS"] = ahead;
  }

  void fill_chains() {
    auto& p = values_.parameters;
    const std::int64_t longest = longest_chain(target_);
    if (!view_.inner().is_constant()) {
      p["K_CHAIN"] = std::to_string(longest);
      p["CHAINED"] = "1";
      return;
    }
    const std::int64_t inner = view_.inner().value();
    const bool chained = inner * view_.taps() > longest;
    p["CHAINED"] = chained ? "1" : "0";
    if (!chained) return;
    if (reads_.local_copy != LocalCopy::none || inner > longest) p["K_CHAIN"] = std::to_string(longest);
    p["TAP_CHAIN"] = std::to_string(std::max<std::int64_t>(1, longest / inner));
  }

  // Elements between neighbours in k, where an operand is read in place.
  void fill_steps() {
    auto& p = values_.parameters;
    const std::string& inner = view_.inner_axis().name;
    const auto a_step = view_.a().index.coefficient(inner);
    if (reads_.local_copy != LocalCopy::a && a_step) p["A_STEP"] = fmt::format("({})", view_.c_text(*a_step));
    if (!reads_.constant_b)
      p["B_STEP"] = fmt::format("({})", view_.c_text(view_.b().index.coefficient(inner).value_or(Expr(1))));
  }

  GeneratedKernel assemble_template() {
    const ContractionTiles& tiles = reads_.tiles;
    const std::int64_t panels_of_item = reads_.local_copy == LocalCopy::b ? 1 : tiles.panels;
    const Expr row_tiles = ceil_div(view_.rows(), Expr(tiles.rows)), row_blocks = ceil_div(row_tiles, Expr(tiles.row_tiles)),
               panels = ceil_div(view_.columns(), Expr(reads_.panel_width));
    TileKernel tile;
    tile.template_name = row_of(strategy_).text_template;
    tile.values = std::move(values_);
    tile.groups = view_.groups() * row_blocks * ceil_div(panels, Expr(panels_of_item));
    tile.schedule = fmt::format("template {}, tile {} x {}, {} x {} tiles a group", tile.template_name, tiles.rows,
                                reads_.panel_width, tiles.row_tiles, panels_of_item);
    tile.constants = std::move(constants_);
    if (reads_.local_copy != LocalCopy::none) {
      const bool rows = reads_.local_copy == LocalCopy::a;
      tile.local_name = rows ? "block" : "panel";
      tile.local_macro = rows ? "BLOCK_FLOATS" : "K * PW";
    }
    return assemble(kernel_, std::move(tile));
  }

  const ContractionView& view_;
  const OperandReads& reads_;
  const StrategyId strategy_;
  const std::vector<Buffer>& buffers_;
  const Target& target_;
  Kernel kernel_;  // with the operand marked that constant panels replace
  std::vector<OwnConstant> constants_;
  TemplateValues values_;
};

}  // namespace

GeneratedKernel emit_fma(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                         const Target& target) {
  const OperandReads reads{std::get<FmaTiles>(choice.tiles), constant_b_layout(view, buffers)};
  return ContractionCode(view, reads, choice.strategy, buffers, target).run();
}

}  // namespace oclc

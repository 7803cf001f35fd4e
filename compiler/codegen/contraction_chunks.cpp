#include "compiler/codegen/contraction_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/codegen/axis_dependencies.h"
#include "compiler/codegen/contraction_choice.h"
#include "compiler/codegen/contraction_epilogue.h"
#include "compiler/codegen/contraction_operands.h"
#include "compiler/codegen/scope.h"
#include "compiler/codegen/tile_kernel.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// Fewer rows, columns or terms do not pay for the copies.
constexpr std::int64_t kLeastRows = 48, kLeastColumns = 32, kLeastTerms = 32;
// A register tile of rows that are neighbours in memory, and the narrowest vector of them.
constexpr int kNeighbours = 4;
// Rows of a block, copied whole beside panels, from which on chunks gain nothing, as parts of all rows and at all; terms from
// which on they gain where rows are read, or copied by their terms; floats from one term of B to the next from which on they
// are far apart.
constexpr std::int64_t kBlockRows = 192, kFewBlockRows = 96, kManyTerms = 2048, kFarTerm = 256;
// Cycles: a vector that is copied, each load and each operation it is computed from, an element, a vector of the sums in each
// chunk, and a chain of a tile.
constexpr double kVectorCopy = 2, kLoad = 3, kOperation = 1, kElementCopy = 3, kSumVector = 1.5, kChain = 30;
// Cycles of an element of A that is read where it lies, and of the start of a run of them; ways of the caches of a core, and
// bytes of one of the first level.
constexpr double kStreamed = 0.25, kRun = 50;
constexpr std::int64_t kWays = 8, kFirstWay = 4096;
// Rows of B by which they are asked for before they are copied.
constexpr std::int64_t kRowsAhead = 8;
// Rows of A that share the copy of a panel of all terms, and terms from which on fewer do not pay for it.
constexpr std::int64_t kSharingRows = 256, kLongPanel = 768;
// Bytes in a row that the processor reads ahead by itself, and how much longer copies of shorter pieces take.
constexpr std::int64_t kPage = 4096;
constexpr double kPiece = 3;
// Floats of A that are copied at a time where its terms are neighbours.
constexpr std::int64_t kFloatsAtATime = 3072;
// Floats between copies, so that they do not lie in one set of the first-level cache: PAD of the template.
constexpr std::int64_t kPad = 16;
// Items that cores finish at different times.
constexpr std::int64_t kItemsOfCore = 4;

bool takes_vectors(const Kernel& loads, const Axis& axis, int width) {
  return axis.extent.is_constant() && axis.extent.value() >= width && can_vectorize(loads, axis.name, width);
}

double cycles_of_vector(const Kernel& loads) {
  double cycles = kVectorCopy;
  for (const ScalarNode& n : loads.nodes) {
    if (n.kind == ScalarNode::Kind::load) cycles += kLoad;
    if (n.kind == ScalarNode::Kind::apply) cycles += kOperation;
  }
  return cycles;
}

class ChunkChooser {
 public:
  ChunkChooser(const ContractionView& view, const ContractionChoice* choice, const Target& target)
      : view_(view),
        choice_(choice),
        target_(target),
        a_(part_for(view.kernel(), view.roles().a)),
        b_(part_for(view.kernel(), view.roles().b)),
        row_step_(step_of_rows()) {}

  std::optional<ChunkTiles> run() {
    const bool enough = typical_extent(view_.rows()) >= kLeastRows && typical_extent(view_.columns()) >= kLeastColumns &&
                        (depth() >= kLeastTerms || !view_.inner().is_constant());
    if (!enough || !chooses_copy_of_a() || !gains()) return std::nullopt;
    choose_copy_of_b();
    // Beside squares that are transposed, many rows share the copies of A too.
    tiles_.in_place = row_step_ > 0 && takes_vectors(b_, view_.column_axis(), target_.vector_width);
    const std::int64_t inner = typical_extent(view_.inner()), chain = longest_chain(target_);
    for (std::int64_t terms : {64, 128, 256}) {
      if (terms < chain || terms % chain != 0) continue;
      tiles_.terms = view_.inner().is_constant() ? std::min(terms, inner) : terms;
      tiles_.taps = tiles_.terms == inner ? std::clamp<std::int64_t>(terms / inner, 1, view_.taps()) : 1;
      for (int vectors = 3; vectors >= 1; --vectors)
        for (int rows = tiles_.rows_innermost ? kNeighbours : 6; rows >= kNeighbours; --rows) visit_tile(rows, vectors);
      if (tiles_.terms == inner) break;
    }
    return best_cost_ < 0 ? std::nullopt : std::optional(best_);
  }

 private:
  double depth() const { return static_cast<double>(typical_extent(view_.inner()) * view_.taps()); }

  bool chooses_copy_of_a() {
    if (view_.roles().m.size() == 1) {
      const Axis& row = view_.axis(view_.roles().m[0]);
      if (varies_by_one(a_, row.name) && takes_vectors(a_, row, kNeighbours)) {
        tiles_.rows_innermost = true;
        tiles_.lanes = takes_vectors(a_, row, target_.vector_width) ? target_.vector_width : kNeighbours;
        copy_a_ = cycles_of_vector(a_) / tiles_.lanes;
        return true;
      }
    }
    if (!takes_vectors(a_, view_.inner_axis(), target_.vector_width)) return false;
    tiles_.lanes = target_.vector_width;
    copy_a_ = cycles_of_vector(a_) / target_.vector_width;
    return true;
  }

  // A load goes from row to row in steps of one element.
  static bool varies_by_one(const Kernel& loads, const std::string& axis) {
    return std::any_of(loads.nodes.begin(), loads.nodes.end(), [&](const ScalarNode& n) {
      return n.kind == ScalarNode::Kind::load && n.index.coefficient(axis) == Expr(1);
    });
  }

  // The other templates read or copy all terms at once: a block of few rows, or panels of B by steps of a page.
  bool gains() const {
    if (!choice_) return true;
    if (tiles_.rows_innermost) {
      const std::int64_t block = choice_->tiles.row_tiles * choice_->tiles.rows;
      return !choice_->copies_panels || block < kFewBlockRows ||
             (block < kBlockRows && block < typical_extent(view_.rows()) && view_.groups() == Expr(1));
    }
    // Squares are transposed by vectors, elsewhere element by element.
    if (!takes_vectors(b_, view_.column_axis(), target_.vector_width)) return takes_squares();
    if (row_step_ > 0 && choice_->local_copy == LocalCopy::none) return !panels_stay();
    // A copied panel of all terms suffices where many rows share it, or few terms make it small.
    if (row_step_ > 0) return typical_extent(view_.rows()) <= kSharingRows && depth() >= kLongPanel;
    const auto step = constant_stride(view_.b().index, view_.inner_axis().name);
    return choice_->local_copy != LocalCopy::b && depth() >= kManyTerms && step && *step >= kFarTerm;
  }

  // A panel of B that is read where it lies stays in the first-level cache, whose sets its rows meet by their distance.
  bool panels_stay() const {
    const auto step = constant_stride(view_.b().index, view_.inner_axis().name);
    return step && depth() * static_cast<double>(std::gcd(*step * 4, kFirstWay)) <= static_cast<double>(kWays * kFirstWay);
  }

  std::int64_t step_of_rows() const {
    if (!row_pointers(view_)) return 0;
    return constant_stride(view_.a().index.substitute(view_.to_flat_row()), "m").value_or(0);
  }

  bool takes_squares() const { return takes_vectors(b_, view_.inner_axis(), target_.vector_width); }

  void choose_copy_of_b() {
    const int width = target_.vector_width;
    const bool columns = takes_vectors(b_, view_.column_axis(), width), squares = takes_squares();
    const double vector = kVectorCopy + cycles_of_vector(b_);
    copy_b_ = columns ? vector / width : squares ? 2 * vector / width : kElementCopy + vector;
  }

  void visit_tile(int rows, int vectors) {
    if (rows * vectors + vectors + 1 > target_.vector_registers) return;
    const std::int64_t width = std::int64_t{vectors} * target_.vector_width;
    const std::int64_t row_tiles = ceil_div(typical_extent(view_.rows()), rows),
                       panels = ceil_div(typical_extent(view_.columns()), width);
    const std::int64_t chunk = tiles_.terms * tiles_.taps, budget = std::min(target_.l2_bytes * 7 / 8, target_.local_bytes) / 4;
    const double step = std::max(4.0, rows * vectors / 2.0),
                 chains = static_cast<double>(ceil_div(chunk, longest_chain(target_))) * kChain;
    for (std::int64_t panel_blocks = 1; panel_blocks <= panels; panel_blocks = next(panel_blocks)) {
      const std::int64_t np = ceil_div(panels, panel_blocks);
      for (std::int64_t row_blocks = 1; row_blocks <= row_tiles; row_blocks = next(row_blocks)) {
        const std::int64_t mt = ceil_div(row_tiles, row_blocks), block = mt * rows, columns = np * width;
        // Vectors of rows are copied in whole pieces, terms of a few rows at a time stay in the first-level cache.
        const std::int64_t at =
            tiles_.rows_innermost || tiles_.in_place ? mt : std::clamp<std::int64_t>(kFloatsAtATime / (rows * chunk), 1, mt);
        if (copied_floats(at * rows, rows, chunk) + columns * chunk + np * kPad + block * columns > budget) continue;
        const double terms = static_cast<double>(chunk), element_of_a = cycles_of_a(block, np, row_blocks),
                     work = static_cast<double>(mt * np) * (terms * step + chains + kSumVector * rows * vectors) +
                            terms * (element_of_a * static_cast<double>(block) + copy_b_ * static_cast<double>(columns));
        const std::int64_t items = typical_extent(view_.groups()) * ceil_div(row_tiles, mt) * ceil_div(panels, np);
        double cost = static_cast<double>(ceil_div(items, target_.compute_units)) * work * (depth() / terms);
        if (items < kItemsOfCore * target_.compute_units) cost *= 1.05;
        if (best_cost_ >= 0 && cost >= best_cost_) continue;
        best_cost_ = cost;
        best_ = tiles_;
        best_.rows = rows;
        best_.vectors = vectors;
        best_.row_tiles = mt;
        best_.panels = np;
        best_.copied_tiles = at;
      }
    }
  }

  // Cycles of an element of A that is read where it lies, from the last cache: runs of a chunk's terms are short for the
  // processor's guesses. Each panel reads it again where rows lie so far apart that they meet in few sets of the second-level
  // cache.
  double cycles_in_place(std::int64_t block, std::int64_t panels) const {
    const std::int64_t way = target_.l2_bytes / kWays, apart = std::gcd(row_step_ * 4, way);
    const bool stays = block <= kWays * (way / std::max(apart, tiles_.terms * 4)),
               cut = tiles_.terms < typical_extent(view_.inner());
    const double cycles = kStreamed + (cut ? kRun / static_cast<double>(tiles_.terms) : 0);
    return cycles * static_cast<double>(stays ? 1 : panels);
  }

  // Cycles of an element of A, one of `block` rows beside `panels` panels.
  double cycles_of_a(std::int64_t block, std::int64_t panels, std::int64_t row_blocks) const {
    if (tiles_.in_place) return cycles_in_place(block, panels);
    return copy_a_ * (row_blocks > 1 && reads_pieces(block) ? kPiece : 1);
  }

  std::int64_t bundle_rows(int rows) const { return std::lcm<std::int64_t>(rows, tiles_.lanes); }

  // Of local memory, for a copy of so many rows of A; of the cache where they are read in place.
  std::int64_t copied_floats(std::int64_t copied_rows, int rows, std::int64_t chunk) const {
    if (!tiles_.rows_innermost) return copied_rows * (chunk + kPad);
    return ceil_div(copied_rows, bundle_rows(rows)) * (chunk * bundle_rows(rows) + kPad);
  }

  // A block's rows are less than a page of each term.
  bool reads_pieces(std::int64_t rows) const { return tiles_.rows_innermost && rows * 4 < kPage; }

  static std::int64_t next(std::int64_t n) { return n < 16 ? n + 1 : n + n / 8; }

  const ContractionView& view_;
  const ContractionChoice* choice_;  // null: no other template computes it
  const Target& target_;
  const Kernel a_, b_;              // what their elements are computed from
  double copy_a_ = 0, copy_b_ = 0;  // cycles an element
  const std::int64_t row_step_;     // floats from one row of A to the next where rows may be read in place; else 0
  ChunkTiles tiles_, best_;
  double best_cost_ = -1;
};

class ChunkCode {
 public:
  ChunkCode(const ContractionView& view, const ChunkTiles& tiles, const Target& target)
      : view_(view), tiles_(tiles), target_(target), width_(target.vector_width), names_(axis_names(view.kernel())) {}

  GeneratedKernel run() {
    fill_parameters();
    values_.holes["GROUP"] = fmt::format("{}\n", fmt::join(view_.group_coordinates(), "\n"));
    if (tiles_.in_place) values_.holes["ROW_STATE"] = *row_pointers(view_);
    const Axis& lanes_of_a = tiles_.rows_innermost ? view_.axis(view_.roles().m[0]) : view_.inner_axis();
    values_.holes["A_ELEMENTS"] = elements_of_a(view_, lanes_of_a.name, tiles_.lanes);
    if (tiles_.rows_innermost) values_.holes["A_LAST_ROWS"] = a_last_rows();
    values_.holes["PACK_B"] = b_panels();
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
    return assemble(view_.kernel(), std::move(tile));
  }

 private:
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
        {"ONE_CHUNK", one_chunk()},
        {"EPILOGUE_UNROLL", has_cheap_epilogue(view_) ? tiles_.rows : 1},
        {"AT", tiles_.copied_tiles},
        {"BR", std::lcm(tiles_.rows, tiles_.lanes)},
        {"CHAIN", std::min(longest_chain(target_), tiles_.terms * tiles_.taps)}};
    for (const auto& [name, value] : numbers) p[name] = std::to_string(value);
  }

  static void add_lines(Emitter& e, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) e.line(line);
  }

  // Elements to[l] of A at the rows m + l and one term, one by one; rows beyond the last repeat it.
  std::string a_last_rows() const {
    const Kernel loads = part_for(view_.kernel(), view_.roles().a);
    Emitter e(loads, view_.mode());
    e.open("for (int l = 0; l < PV; ++l)", names_);
    add_lines(e, view_.tap_coordinates());
    e.line(fmt::format("const {} {} = k;", view_.index_type(), view_.inner_axis().name));
    e.line(fmt::format("const {} {} = min(m + l, M - 1);", view_.index_type(), view_.axis(view_.roles().m[0]).name));
    e.line(fmt::format("to[l] = {};", e.value(view_.roles().a)));
    e.close();
    return e.text();
  }

  // B's panels: vectors of columns, or squares of vectors of terms that are transposed, or one element after the other.
  std::string b_panels() const {
    const Kernel loads = part_for(view_.kernel(), view_.roles().b);
    if (takes_vectors(loads, view_.column_axis(), width_)) return b_by_columns(loads);
    if (takes_vectors(loads, view_.inner_axis(), width_)) return b_by_squares(loads);
    return loop_over_panels("for (int k = k0; k < k_end; ++k)", "to + (panel - panel_begin) * B_PANEL + (k - k0) * PW",
                            b_elements(loads, "k"));
  }

  static std::string loop_over_panels(const std::string& terms, const std::string& row, const std::string& body) {
    return fmt::format(
        "{} {{\n  for (int panel = panel_begin; panel < panel_end; ++panel) {{\n"
        "    __local float* row = {};\n{}  }}\n}}\n",
        terms, row, body);
  }

  // Elements row[j] of a panel at the term `k`, one by one; columns beyond the last repeat it.
  std::string b_elements(const Kernel& loads, const std::string& k) const {
    Emitter e(loads, view_.mode());
    e.open("for (int j = 0; j < PW; ++j)", names_);
    add_lines(e, view_.tap_coordinates());
    e.line(fmt::format("const {} {} = {};", view_.index_type(), view_.inner_axis().name, k));
    e.line(fmt::format("const {} {} = min(panel * PW + j, N - 1);", view_.index_type(), view_.column_axis().name));
    e.line(fmt::format("row[j] = {};", e.value(view_.roles().b)));
    e.close();
    return e.text();
  }

  std::string b_by_columns(const Kernel& loads) const {
    const std::int64_t columns = view_.columns().value();
    Emitter e(loads, view_.mode());
    e.set_vector_axis(view_.column_axis().name, width_);
    e.open("for (int j = 0; j < PW; j += VW)", names_);
    add_lines(e, view_.tap_coordinates());
    e.line(fmt::format("const {} {} = k;", view_.index_type(), view_.inner_axis().name));
    // Vectors beyond the last column repeat it; one that is partly beyond it is not met.
    e.line(fmt::format("const {} {} = {};", view_.index_type(), view_.column_axis().name,
                       columns % panel_width() == 0 ? "panel * PW + j" : "min(panel * PW + j, N - VW)"));
    // Rows of B are a page apart: the processor guesses none of them.
    if (is_plain_load(view_.b())) {
      const Expr term = Expr::axis(view_.inner_axis().name, view_.inner());
      const Expr ahead = view_.b().index.substitute({{view_.inner_axis().name, term + Expr(kRowsAhead)}});
      e.line(fmt::format("if (j % 16 == 0) oclc_prefetch({} + {});", view_.operand_of(view_.b()).name, view_.c_text(ahead)));
    }
    e.line(fmt::format("STORE({}, row + j);", e.vector_value(view_.roles().b)));
    e.close();
    std::string body = e.text();
    if (columns % width_ != 0) body = "if (panel * PW + PW <= N) {\n" + body + "} else {\n" + b_elements(loads, "k") + "}\n";
    return loop_over_panels("for (int k = k0; k < k_end; ++k)", "to + (panel - panel_begin) * B_PANEL + (k - k0) * PW", body);
  }

  std::string b_by_squares(const Kernel& loads) const {
    Emitter e(loads, view_.mode());
    e.set_vector_axis(view_.inner_axis().name, width_);
    e.open("for (int l = 0; l < VW; ++l)", names_);
    add_lines(e, view_.tap_coordinates());
    e.line(fmt::format("const {} {} = k;", view_.index_type(), view_.inner_axis().name));
    e.line(fmt::format("const {} {} = min(panel * PW + j + l, N - 1);", view_.index_type(), view_.column_axis().name));
    e.line(fmt::format("r[l] = {};", e.vector_value(view_.roles().b)));
    e.close();
    const std::string square =
        "for (int j = 0; j < PW; j += VW) {\n  VEC r[VW];\n  #pragma unroll\n" + e.text() +
        "  oclc_transpose(r);\n  #pragma unroll\n  for (int l = 0; l < VW; ++l) STORE(r[l], row + l * PW + j);\n}\n";
    return "// Squares of terms and columns; the last one overlaps its neighbour.\nif (k_end - k0 >= VW) {\n" +
           loop_over_panels("for (int at = k0; at < k_end; at += VW)",
                            "to + (panel - panel_begin) * B_PANEL + (min(at, k_end - VW) - k0) * PW",
                            "const int k = min(at, k_end - VW);\n" + square) +
           "} else {\n" +
           loop_over_panels("for (int k = k0; k < k_end; ++k)", "to + (panel - panel_begin) * B_PANEL + (k - k0) * PW",
                            b_elements(loads, "k")) +
           "}\n";
  }

  const ContractionView& view_;
  const ChunkTiles& tiles_;
  const Target& target_;
  const int width_;
  const std::set<std::string> names_;
  TemplateValues values_;
};

}  // namespace

std::optional<ChunkTiles> choose_chunks(const ContractionView& view, const ContractionChoice* choice, const Target& target) {
  if (!has_few_registers(target) || (choice && choice->constant_b)) return std::nullopt;
  return ChunkChooser(view, choice, target).run();
}

std::optional<GeneratedKernel> generate_chunks(const ContractionView& view, const ContractionChoice* choice,
                                               const Target& target) {
  const auto tiles = choose_chunks(view, choice, target);
  if (!tiles) return std::nullopt;
  return ChunkCode(view, *tiles, target).run();
}

}  // namespace oclc

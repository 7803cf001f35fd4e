#include "compiler/contraction/cpu/fma.h"

#include <algorithm>

#include "compiler/contraction/cpu/register_tile.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Floats between rows of B from which on a copy of a panel is faster than the panel itself, and rows of A that pay for it.
constexpr std::int64_t kFarRows = 512, kManyRows = 48;
// Up to kShortSum terms and from kLongResult rows on, writing the results bounds the product, not its multiply-adds.
constexpr std::int64_t kShortSum = 256, kLongResult = 192;
// Rows of A from which on the last tile's surplus does not count where registers are few.
constexpr std::int64_t kManyRowsOfTiles = 128;
// Floats between terms of a row of A from which on each is on a cache line of its own.
constexpr std::int64_t kFarTerms = 16;

class Chooser {
 public:
  Chooser(const Problem& problem, const Target& target) : p_(problem), target_(target) {}

  std::optional<FmaTiles> run(std::optional<LocalCopy> copied) {
    tiles_ = best_tiles();
    if (!(copied ? choose_template_of(*copied) : choose_template())) return std::nullopt;
    choice_.panel_width = panel_width();
    return choice_;
  }

 private:
  ContractionTiles best_tiles() const {
    ContractionShape shape;
    shape.groups = p_.g.typical;
    shape.rows = p_.m.typical;
    shape.columns = p_.n.typical;
    shape.depth = p_.depth();
    shape.row_bytes = p_.k.typical * 4;
    // Measured where software prefetches.
    shape.fresh_columns =
        p_.b.constant && target_.has.software_prefetch && prefetches_panel(target_, shape.depth * shape.columns * 4);
    if (!p_.g.known || !p_.m.known) {
      shape.least_groups = p_.g.least;
      shape.least_rows = p_.m.least;
    }
    return choose_tiles(shape, target_);
  }

  bool choose_template() {
    const bool row_pointers = row_pointers_suffice();
    // Elements that need converting are converted once, in a copy, if there is room for it.
    const bool a_in_place = row_pointers && !p_.a.half();
    if (!p_.b.constant) {
      const ContractionTiles before = tiles_;
      if (p_.b.unit_columns) fit_panel();
      if (!target_.has.tall_tiles && b_is_read_in_place() && copy_both()) return true;
      if (!b_is_read_in_place()) {
        tiles_ = before;
        return row_pointers && p_.taps == 1 && copy_b();
      }
      if (waits_for_results() && copy_a()) return true;
      if (row_pointers && p_.taps == 1 && is_worth_copying_b()) {
        const ContractionTiles in_place = tiles_;
        if (copy_b()) return true;
        tiles_ = in_place;
      }
    }
    if (copy_a_by_rows()) return true;
    return a_in_place || copy_a() || row_pointers;
  }

  bool choose_template_of(LocalCopy copied) {
    if (copied == LocalCopy::b) return !p_.b.constant && row_pointers_suffice() && p_.taps == 1 && copy_b();
    if (!p_.b.constant && p_.b.unit_columns) fit_panel();
    if (!p_.b.constant && !b_is_read_in_place()) return false;
    return copied == LocalCopy::a ? copy_a_by_rows() || copy_a() : row_pointers_suffice();
  }

  // A's elements of a row and tap lie at a pointer and a step in k; a tap in the padding is one pointer to zeros.
  bool row_pointers_suffice() const {
    const LeftOperand& a = p_.a;
    if (!a.in_place || !a.terms_step) return false;
    // As many zeros stand for a row in the padding as its last element is away.
    if (a.guarded && (!a.zero_padding || !a.term_stride || !p_.k.known)) return false;
    return !a.guarded_by_terms;
  }

  // Vectors read rows of B [inner][column] in place: unit step in columns, and no panel with a ragged end.
  bool b_is_read_in_place() const {
    const RightOperand& b = p_.b;
    return b.in_place && !b.guarded && b.unit_columns && b.terms_step && b.taps_follow && p_.n.known && rows_hold_panels();
  }

  // Elements of B's rows lie on a page each, and many rows of A meet each panel.
  bool is_worth_copying_b() const { return p_.b.term_stride && *p_.b.term_stride >= kFarRows && p_.m.typical >= kManyRows; }

  // Sums so short that results, and what is added to them, take memory as long as the products: rows are done one after
  // another, whole, beside a copy of A.
  bool waits_for_results() const {
    return p_.taps == 1 && p_.k.typical <= kShortSum && p_.m.typical >= kLongResult && p_.n.typical >= 2 * panel_width();
  }

  // Whole panels of columns, or rows padded to them.
  bool rows_hold_panels() const {
    const std::int64_t columns = p_.n.typical;
    if (columns % panel_width() == 0) return true;
    const auto step = p_.b.term_stride;
    return is_one(p_.g) && step && *step >= ceil_div(columns, panel_width()) * panel_width() && *step % panel_width() == 0 &&
           p_.b.starts_rows;
  }

  static bool is_one(const Extent& e) { return e.known && e.typical == 1; }

  std::int64_t panel_width() const { return std::int64_t{tiles_.vectors} * target_.vector_width; }

  // Widest panel that divides the columns.
  void fit_panel() {
    if (!p_.n.known) return;
    while (tiles_.vectors > 1 && p_.n.typical % panel_width() != 0) --tiles_.vectors;
  }

  // Bytes of local memory that a copy may take without pushing what it is multiplied with out of the cache.
  std::int64_t copy_budget() const { return std::min(target_.l2_bytes / 2, target_.local_bytes); }

  // Rows of the register tile beside two vectors: few left over in the last one.
  int copied_b_rows() const {
    // The rows of a tile come from the last cache: four at a time are guessed ahead better than six.
    if (!target_.has.tall_tiles && p_.m.typical >= kManyRowsOfTiles) return 4;
    int best = 4;
    double best_cost = 0;
    for (int rows = 4; rows <= 12; ++rows) {
      if (!fits_registers(rows, tiles_.vectors, target_)) continue;
      const double cost = static_cast<double>(ceil_div(p_.m.typical, rows)) *
                          (std::max(4, rows) + cost::kTileStartSteps / static_cast<double>(p_.k.typical));
      if (best_cost > 0 && cost > best_cost) continue;
      best_cost = cost;
      best = rows;
    }
    return best;
  }

  // Vectors of a copied panel: two, or one or three where that leaves so much less of the last panel empty without more panels,
  // for each of which A is read.
  int copied_b_vectors() const {
    const auto panels = [&](int vectors) { return ceil_div(p_.n.typical, std::int64_t{vectors} * target_.vector_width); };
    for (const int vectors : {1, 3}) {
      const auto multiplied = static_cast<double>(panels(vectors) * vectors);
      if (panels(vectors) <= panels(2) && multiplied < cost::kFullerPanels * static_cast<double>(panels(2) * 2)) return vectors;
    }
    return 2;
  }

  bool copy_b() {
    if (!p_.k.known) return false;
    const auto panel_bytes = [&] { return p_.k.typical * panel_width() * 4; };
    tiles_.vectors = copied_b_vectors();
    tiles_.rows = copied_b_rows();
    while (tiles_.vectors > 1 && panel_bytes() > copy_budget()) --tiles_.vectors;
    if (panel_bytes() > copy_budget()) return false;
    const std::int64_t row_tiles = ceil_div(p_.m.typical, tiles_.rows), panels = ceil_div(p_.n.typical, panel_width());
    // All row tiles share a packed panel, unless cores would idle.
    const std::int64_t blocks =
        std::max<std::int64_t>(1, 4 * target_.compute_units / std::max<std::int64_t>(1, p_.g.typical * panels));
    tiles_.row_tiles = std::max<std::int64_t>(1, ceil_div(row_tiles, blocks));
    choice_.local_copy = LocalCopy::b;
    return true;
  }

  bool copy_a() {
    if (!p_.k.known) return false;
    // A row is padded so that rows do not fall into one cache set: A_PITCH of the template.
    const std::int64_t row_bytes = (p_.depth() + 16) * 4;
    if (row_bytes > copy_budget()) return false;
    tiles_.rows = static_cast<int>(std::min<std::int64_t>(tiles_.rows, copy_budget() / row_bytes));
    share_copied_rows(copy_budget() / (row_bytes * tiles_.rows));
    choice_.local_copy = LocalCopy::a;
    return true;
  }

  // Blocks of up to `fitting` row tiles, and of panels, that cores finish first. A block copies its rows, and its panels come
  // from the last cache.
  void share_copied_rows(std::int64_t fitting) {
    const std::int64_t row_tiles = ceil_div(p_.m.typical, tiles_.rows), panels = ceil_div(p_.n.typical, panel_width()),
                       cores = target_.compute_units;
    const auto depth = static_cast<double>(p_.depth());
    const double tile = depth * std::max(4.0, tiles_.rows * tiles_.vectors / 2.0) + cost::kTileStartSteps,
                 copy = depth * tiles_.rows / target_.vector_width * cost::kPanelCopyCycles,
                 panel = depth * static_cast<double>(panel_width() * 4) / cost::kLastCacheBytesPerCycle;
    double best = 0;
    for (std::int64_t mt = std::clamp<std::int64_t>(fitting, 1, row_tiles); mt >= 1; --mt) {
      for (std::int64_t panel_blocks = 1; panel_blocks <= std::min(panels, 2 * cores); ++panel_blocks) {
        const std::int64_t np = ceil_div(panels, panel_blocks),
                           items = p_.g.typical * ceil_div(row_tiles, mt) * ceil_div(panels, np);
        const double item = static_cast<double>(mt) * (copy + static_cast<double>(np) * tile) + static_cast<double>(np) * panel,
                     cost = static_cast<double>(ceil_div(items, cores)) * item * (items < 4 * cores ? cost::kFewItems : 1);
        if (best > 0 && cost >= best) continue;
        best = cost;
        tiles_.row_tiles = mt;
        tiles_.panels = np;
      }
    }
  }

  // Rows of A are neighbours and its terms far apart: in a copy in the same order, vectors are loaded and stored, and the tiles
  // read it from its beginning to its end.
  bool copy_a_by_rows() {
    const int lanes = row_lanes(target_.vector_width);
    if (lanes < 4) return false;
    // Whole vectors and whole tiles in every block of rows.
    const std::int64_t rows = p_.m.typical, depth = p_.depth(), fitting = copy_budget() / (depth * 4);
    const int tile_rows = rows % 12 == 0 && lanes == 4 ? 12 : rows % 8 == 0 ? 8 : 4;
    const std::int64_t step = std::max<std::int64_t>(lanes, tile_rows);
    if (fitting < step) return false;
    tiles_.rows = tile_rows;
    while (!fits_registers(tiles_.rows, tiles_.vectors, target_)) --tiles_.vectors;
    fit_panel();
    const std::int64_t panels = ceil_div(p_.n.typical, panel_width()), cores = target_.compute_units, groups = p_.g.typical,
                       wanted_blocks = ceil_div(4 * cores, std::max<std::int64_t>(1, groups));
    std::int64_t block = std::min(fitting / step * step, ceil_div(ceil_div(rows, wanted_blocks), step) * step);
    tiles_.row_tiles = block / tile_rows;
    const std::int64_t items = groups * ceil_div(rows, block);
    tiles_.panels = ceil_div(panels, std::clamp<std::int64_t>(ceil_div(2 * cores, items), 1, panels));
    choice_.local_copy = LocalCopy::a;
    choice_.row_lanes = lanes;
    return true;
  }

  // Lanes of the vectors, at most `lanes`, that copy A where its rows are neighbours and its terms far apart; 0 elsewhere.
  int row_lanes(int lanes) const {
    if (!p_.k.known || !p_.m.known || !p_.a.one_row_axis || p_.a.unit_row_term_stride < kFarTerms) return 0;
    while (lanes >= 4 && p_.m.typical % lanes != 0) lanes /= 2;
    return lanes >= 4 && p_.a.of_outputs.can(lanes) ? lanes : 0;
  }

  // Both operands lie along their rows and columns, with their terms far apart. Where registers are few, tiles have four rows,
  // for which a line of B is fetched from a page of its own too often: panels of B are copied too.
  bool copy_both() {
    constexpr std::int64_t kRows = 4;
    if (p_.b.half() || row_lanes(kRows) != kRows) return false;
    const std::int64_t rows = p_.m.typical, columns = p_.n.typical, term_bytes = p_.depth() * 4, cores = target_.compute_units,
                       groups = p_.g.typical, budget = std::min(target_.l2_bytes * 3 / 4, target_.local_bytes);
    double best = 0;
    for (int vectors = 3; vectors >= 1; --vectors) {
      const std::int64_t width = std::int64_t{vectors} * target_.vector_width, panels = ceil_div(columns, width),
                         fitting = (budget / term_bytes - width) / kRows * kRows;
      if (fitting < 2 * kRows) continue;
      // Blocks of equal size.
      const std::int64_t blocks = ceil_div(rows, fitting), row_tiles = ceil_div(ceil_div(rows, blocks), kRows);
      // A step of a panel by all tiles, and its copy. Sums of one vector wait for each other.
      const double step = std::max(4.0, kRows * vectors / 2.0),
                   cost = static_cast<double>(panels * blocks) *
                          (step * static_cast<double>(row_tiles) + vectors * cost::kPanelCopyCycles);
      if (best > 0 && cost >= best) continue;
      best = cost;
      tiles_.rows = kRows;
      tiles_.vectors = vectors;
      tiles_.row_tiles = row_tiles;
      tiles_.panels = ceil_div(panels, std::clamp<std::int64_t>(ceil_div(4 * cores, groups * blocks), 1, panels));
    }
    if (best == 0) return false;
    choice_.local_copy = LocalCopy::a;
    choice_.row_lanes = kRows;
    choice_.copies_panels = true;
    return true;
  }

  const Problem& p_;
  const Target& target_;
  FmaTiles choice_;
  ContractionTiles& tiles_ = choice_.tiles;
};

}  // namespace

std::optional<FmaTiles> choose_fma(const Problem& problem, const Target& target, std::optional<LocalCopy> copied) {
  return Chooser(problem, target).run(copied);
}

}  // namespace oclc

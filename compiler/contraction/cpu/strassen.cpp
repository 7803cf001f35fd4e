#include "compiler/contraction/cpu/strassen.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/contraction/cpu/chunks.h"
#include "compiler/contraction/cpu/register_tile.h"
#include "compiler/contraction/cpu/winograd.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Rows and columns from which on products are long enough; fewer rows wait for weights.
constexpr std::int64_t kLeastStrassenRows = 96, kLeastStrassenColumns = 64, kLeastStrassenTerms = 512, kLeastCopiedTerms = 384;
// Rows and columns of products of run time: gradients of narrower weights gain 0.3 ms of mobilenet_v2's 230, and all of a
// network's gradients would err by it.
constexpr std::int64_t kLeastCopiedSide = 128;
// Pairs of terms of a chunk, a multiple of every vector's width; panels of a work-item; rows and vectors of a register tile.
constexpr std::int64_t kLeastPairs = 32, kMostPairs = 128, kMostItemPanels = 16;
constexpr int kFewestTileRows = 4, kMostTileRows = 14, kMostVectors = 4;
// What multiply-adds do not hide: cycles of a vector of sums that is added up, and bytes a cycle of right factors. Measured on
// a Zen 4, and with constant weights on a Sapphire Rapids, which multiplies two vectors of 512 bits a cycle by the units that
// add: there seven products with them take as long as eight.
struct UnhiddenCosts {
  double sum_cycles, right_bytes;
};
constexpr UnhiddenCosts kUsualCosts{1, 96}, kSharedUnitCosts{3, 20};
constexpr std::int64_t kLeftPitch = 16;
// A copied panel's blocks and what is combined of them: they stay in the first-level cache beside a tile's rows.
constexpr std::int64_t kCopiedBytes = 24 << 10, kLeastCopiedPairs = 48;

double strassen_error(const StrassenTiles& t) {
  return cost::kStrassenError * std::sqrt(std::max(1.0, static_cast<double>(t.terms) / static_cast<double>(kLongestChain)));
}

// Cycles of a core by the other templates.
double plain_cycles(const StrassenShape& s, const Target& target) {
  const ContractionTiles t = choose_tiles({1, s.rows, s.columns, s.inner, s.inner * 4}, target);
  const std::int64_t panels = ceil_div(s.columns, std::int64_t{t.vectors} * target.vector_width),
                     row_tiles = ceil_div(s.rows, std::int64_t{t.rows}),
                     items = ceil_div(row_tiles, t.row_tiles) * ceil_div(panels, t.panels);
  const double tile = static_cast<double>(s.inner) * std::max(t.rows * t.vectors / 2.0, 4.0) + cost::kTileCycles +
                      cost::kResultVectorCycles * t.rows * t.vectors;
  return static_cast<double>(ceil_div(items, target.compute_units)) *
         (static_cast<double>(t.row_tiles * t.panels) * tile + cost::kItemCycles) *
         (s.copy_of_right > 0 ? cost::kPlainCopies : 1);
}

// A work-item's local memory: combinations of A, one of B, and the seven sums of its panels, or of one where a chunk is all
// terms.
std::int64_t local_floats(const StrassenTiles& t, const StrassenShape& s, std::int64_t width) {
  const std::int64_t pairs = t.row_tiles * t.rows, panels = s.inner > 2 * t.terms ? t.panels : 1;
  return kStrassenProducts * (pairs * (t.terms + kLeftPitch) + 16 + panels * (pairs * t.vectors * width + 16)) +
         t.terms * t.vectors * width * (s.copy_of_right > 0 ? 1 + kStrassenBlocks : 1);
}

// Cycles of a core.
double strassen_cycles(const StrassenTiles& t, const StrassenShape& s, const Target& target) {
  const std::int64_t width = target.vector_width, panel_width = t.vectors * width, pairs = t.row_tiles * t.rows,
                     items = ceil_div(ceil_div(ceil_div(s.rows, 2), std::int64_t{t.rows}), t.row_tiles) *
                             ceil_div(ceil_div(s.columns, 2 * panel_width), t.panels);
  const UnhiddenCosts& unhidden =
      has_wide_vectors(target) && !target.has.fadd_pipes && s.copy_of_right == 0 ? kSharedUnitCosts : kUsualCosts;
  const double step = std::max(t.rows * t.vectors / 2.0, 4.0),
               tile =
                   static_cast<double>(t.terms) * step + cost::kStrassenStartCycles + unhidden.sum_cycles * t.rows * t.vectors,
               factor_bytes = static_cast<double>(t.terms * panel_width * 4 * kStrassenBlocks) / kStrassenProducts,
               factor = std::max(static_cast<double>(t.row_tiles) * tile, factor_bytes / cost::kStrassenFreshBytesPerCycle) +
                        factor_bytes / unhidden.right_bytes,
               combine = static_cast<double>(pairs) * static_cast<double>(t.terms / width) *
                         (cost::kStrassenCombineCycles + s.compute_of_left),
               copies = s.copy_of_right * static_cast<double>(kStrassenBlocks * t.terms * t.vectors * t.panels),
               results = static_cast<double>(pairs * t.vectors * t.panels) * cost::kStrassenResultCycles,
               chunks = static_cast<double>(s.inner / (2 * t.terms)),
               item = chunks * (static_cast<double>(t.panels * kStrassenProducts) * factor + combine + copies) + results +
                      cost::kItemCycles;
  return static_cast<double>(ceil_div(items, target.compute_units)) * item;
}

// Replaces `best` by a better one with the register tile and the terms of `t`: how many tiles and panels a work-item has.
void choose_items(StrassenTiles t, const StrassenShape& s, const Target& target, std::optional<StrassenTiles>& best) {
  const auto budget =
      std::min(static_cast<std::int64_t>(cost::kStrassenLocalShare * static_cast<double>(target.l2_bytes)), target.local_bytes);
  const std::int64_t panels = ceil_div(s.columns, std::int64_t{2} * t.vectors * target.vector_width),
                     tiles = ceil_div(ceil_div(s.rows, 2), std::int64_t{t.rows});
  for (std::int64_t row_blocks = 1, tiles_of_block = 0; row_blocks <= tiles;
       row_blocks = tiles_of_block > 1 ? ceil_div(tiles, tiles_of_block - 1) : tiles + 1) {
    t.row_tiles = tiles_of_block = ceil_div(tiles, row_blocks);  // another number each time
    if (s.rows_innermost)
      t.row_tiles = ceil_div(t.row_tiles * t.rows, bundle_rows(t, target)) * bundle_rows(t, target) / t.rows;
    for (t.panels = 1; t.panels <= std::min(panels, kMostItemPanels); ++t.panels) {
      if (local_floats(t, s, target.vector_width) * 4 > budget) break;
      t.cycles = strassen_cycles(t, s, target);
      if (!best || t.cycles < best->cycles * cost::kStrassenBetter) best = t;
    }
  }
}

}  // namespace

std::int64_t bundle_rows(const StrassenTiles& t, const Target& target) { return std::lcm(t.rows, target.vector_width); }

std::optional<StrassenShape> strassen_shape(const Problem& p, const Target& target) {
  if (!p.g.known || p.g.typical != 1 || p.taps != 1 || !p.k.known || !p.n.known || p.b.stored != DType::f32)
    return std::nullopt;
  const int width = target.vector_width;
  StrassenShape s{p.m.typical, p.n.typical, p.k.typical};
  s.rows_innermost = p.a.unit_rows && p.a.of_outputs.takes(width);
  if (!p.a.in_place) s.compute_of_left = kStrassenBlocks * copy_cycles(p.a);
  if (!s.rows_innermost && !p.a.of_terms.can(width)) return std::nullopt;
  if (p.b.constant && !p.b.shared) return s;
  // Not measured with low tiles.
  const bool columns = p.b.of_outputs.takes(width);
  if (!target.has.tall_tiles || (!columns && !p.b.of_terms.takes(width))) return std::nullopt;
  s.copy_of_right = copy_cycles(p.b) * (columns ? cost::kStrassenColumnsShare : cost::kStrassenSquaresShare);
  s.vectors_of_terms = !s.rows_innermost || !columns;
  return s;
}

std::optional<StrassenTiles> choose_strassen_tiles(const StrassenShape& s, const Target& target) {
  std::optional<StrassenTiles> best;
  StrassenTiles t;
  for (t.terms = kLeastPairs; t.terms <= kMostPairs; t.terms += s.vectors_of_terms ? target.vector_width : 1) {
    if (s.inner % (2 * t.terms) != 0 || (s.copy_of_right > 0 && t.terms < kLeastCopiedPairs)) continue;
    // Longer chains err more.
    if (best && t.terms > kLongestChain) break;
    for (t.vectors = 1; t.vectors <= kMostVectors; ++t.vectors) {
      if (s.copy_of_right > 0 && (kStrassenBlocks + 1) * t.terms * t.vectors * target.vector_width * 4 > kCopiedBytes) continue;
      for (t.rows = kFewestTileRows; t.rows <= kMostTileRows; ++t.rows) {
        if (fits_registers(t.rows, t.vectors, target)) choose_items(t, s, target, best);
      }
    }
  }
  return best;
}

std::optional<StrassenGain> strassen_gain(const Problem& p, const Target& target) {
  const auto shape = asks_for_winograd(p) ? std::nullopt : strassen_shape(p, target);
  if (!shape) return std::nullopt;
  const bool copied = shape->copy_of_right > 0;
  if (p.m.least < kLeastStrassenRows || shape->columns < kLeastStrassenColumns ||
      shape->inner < (copied ? kLeastCopiedTerms : kLeastStrassenTerms) ||
      (copied && std::min(p.m.least, shape->columns) < kLeastCopiedSide))
    return std::nullopt;
  const auto tiles = choose_strassen_tiles(*shape, target);
  if (!tiles) return std::nullopt;
  const double plain = plain_cycles(*shape, target);
  if (plain <= cost::kStrassenGain * tiles->cycles) return std::nullopt;
  return StrassenGain{plain - tiles->cycles, strassen_error(*tiles)};
}

}  // namespace oclc

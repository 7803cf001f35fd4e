#include "compiler/contraction/cpu/chunks.h"

#include <algorithm>
#include <numeric>

#include "compiler/contraction/cpu/register_tile.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

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
// Ways of the caches of a core, and bytes of one of the first level.
constexpr std::int64_t kWays = 8, kFirstWay = 4096;
// Rows of A that share the copy of a panel of all terms, and terms from which on fewer do not pay for it.
constexpr std::int64_t kSharingRows = 256, kLongPanel = 768;
// Bytes in a row that the processor reads ahead by itself.
constexpr std::int64_t kPage = 4096;
// Floats of A that are copied at a time where its terms are neighbours.
constexpr std::int64_t kFloatsAtATime = 3072;
// Rows, columns and terms that pay for a copy of B beside a constant left operand; bytes of a panel's chunk, which stays in the
// first-level cache beside what is multiplied with it; the shortest chunk of many terms, and the most rows of a tile, there and
// where registers are many.
constexpr std::int64_t kLeastPanelRows = 48, kLeastPanelColumns = 24, kLeastPanelTerms = 8, kPanelBytes = 24 << 10,
                       kShortChunk = 128;
constexpr int kMostPanelRows = 12;
// Floats between copies, so that they do not lie in one set of the first-level cache: PAD of the template.
constexpr std::int64_t kPad = 16;
// Items that cores finish at different times.
constexpr std::int64_t kItemsOfCore = 4;

class ChunkChooser {
 public:
  ChunkChooser(const Problem& problem, const std::optional<FmaTiles>& fma, const Target& target)
      : p_(problem), fma_(fma), target_(target) {}

  std::optional<TimedChunks> run(bool if_few) {
    const bool enough = p_.m.typical >= kLeastRows && p_.n.typical >= kLeastColumns && (depth() >= kLeastTerms || !p_.k.known);
    if ((!enough && !if_few) || !chooses_copy_of_a() || !gains()) return std::nullopt;
    choose_copy_of_b();
    // Beside squares that are transposed, many rows share the copies of A too.
    tiles_.in_place = p_.a.row_step > 0 && p_.b.of_outputs.takes(target_.vector_width);
    const std::int64_t inner = p_.k.typical, chain = longest_chain_of_chunk(target_);
    for (std::int64_t terms : {64, 128, 256}) {
      if (terms < chain || terms % chain != 0) continue;
      tiles_.terms = p_.k.known ? std::min(terms, inner) : terms;
      tiles_.taps = tiles_.terms == inner ? std::clamp<std::int64_t>(terms / inner, 1, p_.taps) : 1;
      for (int vectors = 4; vectors >= 1; --vectors) visit_rows(vectors);
      if (tiles_.terms == inner) break;
    }
    return best_cost_ < 0 ? std::nullopt : std::optional(TimedChunks{best_, best_cost_});
  }

  // A is a constant, whose tiles are packed one after another.
  std::optional<TimedChunks> run_beside_panels(bool if_few) {
    const bool few = p_.m.typical < kLeastPanelRows || p_.n.typical < kLeastPanelColumns || depth() < kLeastPanelTerms;
    if ((few && !if_few) || !p_.b.of_outputs.takes(target_.vector_width)) return std::nullopt;
    choose_copy_of_b();
    tiles_.constant_a = true;
    const std::int64_t inner = p_.k.typical;
    for (std::int64_t terms : {128, 256, 512}) {
      if (terms > std::max(longest_chain_of_chunk(target_), kShortChunk)) break;
      tiles_.terms = std::min(terms, inner);
      tiles_.taps = 1;
      for (int vectors = 6; vectors >= 1; --vectors)
        for (int rows = kMostPanelRows; rows >= 2; --rows) visit_tile(rows, vectors);
      if (tiles_.terms == inner) break;
    }
    return best_cost_ < 0 ? std::nullopt : std::optional(TimedChunks{best_, best_cost_});
  }

 private:
  double depth() const { return static_cast<double>(p_.depth()); }

  bool chooses_copy_of_a() {
    const LeftOperand& a = p_.a;
    if (a.unit_rows && a.of_outputs.takes(kNeighbours)) {
      tiles_.rows_innermost = true;
      tiles_.lanes = a.of_outputs.takes(target_.vector_width) ? target_.vector_width : kNeighbours;
      copy_a_ = copy_cycles(a) / tiles_.lanes;
      return true;
    }
    if (!a.of_terms.takes(target_.vector_width)) return false;
    tiles_.lanes = target_.vector_width;
    copy_a_ = copy_cycles(a) / target_.vector_width;
    return true;
  }

  // The other templates read or copy all terms at once: a block of few rows, or panels of B by steps of a page.
  bool gains() const {
    if (!fma_) return true;
    if (tiles_.rows_innermost) {
      const std::int64_t block = fma_->tiles.row_tiles * fma_->tiles.rows;
      return !fma_->copies_panels || block < kFewBlockRows ||
             (block < kBlockRows && block < p_.m.typical && p_.g.known && p_.g.typical == 1);
    }
    // Squares are transposed by vectors, elsewhere element by element.
    if (!p_.b.of_outputs.takes(target_.vector_width)) return takes_squares() && !shares_panels();
    if (p_.a.row_step > 0 && fma_->local_copy == LocalCopy::none) return !panels_stay();
    // A copied panel of all terms suffices where many rows share it, or few terms make it small.
    if (p_.a.row_step > 0) return p_.m.typical <= kSharingRows && depth() >= kLongPanel;
    const auto step = p_.b.term_stride;
    return fma_->local_copy != LocalCopy::b && depth() >= kManyTerms && step && *step >= kFarTerm;
  }

  // Where registers are many, so many rows share the copy of a panel that how it is copied does not count.
  bool shares_panels() const {
    return target_.has.tall_tiles && fma_->local_copy == LocalCopy::b &&
           fma_->tiles.row_tiles * fma_->tiles.rows >= kSharingRows;
  }

  // A panel of B that is read where it lies stays in the first-level cache, whose sets its rows meet by their distance.
  bool panels_stay() const {
    const auto step = p_.b.term_stride;
    return step && depth() * static_cast<double>(std::gcd(*step * 4, kFirstWay)) <= static_cast<double>(kWays * kFirstWay);
  }

  bool takes_squares() const { return p_.b.of_terms.takes(target_.vector_width); }

  void choose_copy_of_b() {
    const int width = target_.vector_width;
    const bool columns = p_.b.of_outputs.takes(width), squares = takes_squares();
    const double vector = cost::kChunkVectorCopy + copy_cycles(p_.b);
    copy_b_ = columns ? vector / width : squares ? 2 * vector / width : cost::kChunkElementCopy + vector;
  }

  void visit_rows(int vectors) {
    const int most = target_.has.tall_tiles ? kMostPanelRows : tiles_.rows_innermost ? kNeighbours : 6;
    for (int rows = most; rows >= kNeighbours; rows -= tiles_.rows_innermost ? kNeighbours : 1) visit_tile(rows, vectors);
  }

  void visit_tile(int rows, int vectors) {
    if (!fits_registers(rows, vectors, target_)) return;
    const std::int64_t width = std::int64_t{vectors} * target_.vector_width;
    if (tiles_.constant_a && width * tiles_.terms * 4 > kPanelBytes) return;
    const std::int64_t row_tiles = ceil_div(p_.m.typical, rows), panels = ceil_div(p_.n.typical, width);
    const std::int64_t chunk = tiles_.terms * tiles_.taps, budget = std::min(target_.l2_bytes * 7 / 8, target_.local_bytes) / 4;
    const double step = tile_step_cycles(rows, vectors),
                 chains = static_cast<double>(ceil_div(chunk, longest_chain_of_chunk(target_))) * cost::kChunkChain;
    for (std::int64_t panel_blocks = 1; panel_blocks <= panels; panel_blocks = next(panel_blocks)) {
      const std::int64_t np = ceil_div(panels, panel_blocks);
      for (std::int64_t row_blocks = 1; row_blocks <= row_tiles; row_blocks = next(row_blocks)) {
        const std::int64_t mt = ceil_div(row_tiles, row_blocks), block = mt * rows, columns = np * width;
        // Vectors of rows are copied in whole pieces, terms of a few rows at a time stay in the first-level cache.
        const std::int64_t at = tiles_.rows_innermost || tiles_.in_place || tiles_.constant_a
                                    ? mt
                                    : std::clamp<std::int64_t>(kFloatsAtATime / (rows * chunk), 1, mt);
        if (copied_floats(at * rows, rows, chunk) + columns * chunk + np * kPad + block * columns > budget) continue;
        const double terms = static_cast<double>(chunk), element_of_a = cycles_of_a(block, np, row_blocks),
                     work = static_cast<double>(mt * np) * (terms * step + chains + cost::kChunkSumVector * rows * vectors) +
                            terms * (element_of_a * static_cast<double>(block) + copy_b_ * static_cast<double>(columns));
        const std::int64_t items = p_.g.typical * ceil_div(row_tiles, mt) * ceil_div(panels, np);
        double cost = static_cast<double>(ceil_div(items, target_.compute_units)) * work * (depth() / terms);
        if (items < kItemsOfCore * target_.compute_units) cost *= cost::kFewItems;
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
    const std::int64_t way = target_.l2_bytes / kWays, apart = std::gcd(p_.a.row_step * 4, way);
    const bool stays = block <= kWays * (way / std::max(apart, tiles_.terms * 4)), cut = tiles_.terms < p_.k.typical;
    const double cycles = cost::kChunkStreamed + (cut ? cost::kChunkRun / static_cast<double>(tiles_.terms) : 0);
    return cycles * static_cast<double>(stays ? 1 : panels);
  }

  // Cycles of an element of A, one of `block` rows beside `panels` panels.
  double cycles_of_a(std::int64_t block, std::int64_t panels, std::int64_t row_blocks) const {
    if (tiles_.constant_a) return cost::kChunkStreamed;
    if (tiles_.in_place) return cycles_in_place(block, panels);
    return copy_a_ * (row_blocks > 1 && reads_pieces(block) ? cost::kChunkPiece : 1);
  }

  std::int64_t bundle_rows(int rows) const { return std::lcm<std::int64_t>(rows, tiles_.lanes); }

  // Of local memory, for a copy of so many rows of A; of the cache where they are read in place.
  std::int64_t copied_floats(std::int64_t copied_rows, int rows, std::int64_t chunk) const {
    if (!tiles_.rows_innermost) return copied_rows * (chunk + kPad);
    return ceil_div(copied_rows, bundle_rows(rows)) * (chunk * bundle_rows(rows) + kPad);
  }

  // A block's rows are less than a page of each term, and nothing asks for them ahead.
  bool reads_pieces(std::int64_t rows) const { return tiles_.rows_innermost && rows * 4 < kPage && !asks_ahead(); }

  // While a chunk is multiplied the next one's lines are asked for: both operands lie along their rows and columns.
  bool asks_ahead() const { return tiles_.rows_innermost && p_.b.of_outputs.takes(target_.vector_width); }

  static std::int64_t next(std::int64_t n) { return n < 16 ? n + 1 : n + n / 8; }

  const Problem& p_;
  const std::optional<FmaTiles>& fma_;
  const Target& target_;
  double copy_a_ = 0, copy_b_ = 0;  // cycles an element
  ChunkTiles tiles_, best_;
  double best_cost_ = -1;
};

}  // namespace

double copy_cycles(const ContractionOperand& operand) {
  return cost::kChunkVectorCopy + cost::kChunkLoad * operand.elements + cost::kChunkOperation * operand.operations;
}

std::optional<TimedChunks> choose_chunks_beside_panels(const Problem& problem, const Target& target, bool if_few) {
  return ChunkChooser(problem, std::nullopt, target).run_beside_panels(if_few);
}

std::int64_t longest_chain_of_chunk(const Target& target) {
  return target.has.tall_tiles ? kLongestChain : longest_chain(target);
}

std::optional<TimedChunks> choose_chunks(const Problem& problem, const std::optional<FmaTiles>& fma, const Target& target,
                                         bool if_few) {
  if (fma && problem.b.constant) return std::nullopt;
  return ChunkChooser(problem, fma, target).run(if_few);
}

}  // namespace oclc

#include "compiler/contraction/few_rows.h"

#include <algorithm>

#include "compiler/contraction/register_tile.h"
#include "compiler/ir/division.h"

namespace oclc {
namespace {

// More rows pay for a copy of the right operand. One that the second-level cache holds is read by tiles of few columns as fast.
constexpr std::int64_t kMostFewRows = 47, kLeastBytesByRows = 2 << 20, kLeastBytesByColumns = 256 << 10;
constexpr std::int64_t kLeastWidth = 64, kLeastDepth = 64;
// Rows beside one vector of columns, where these fill no two: more load each element of A for a single product.
constexpr std::int64_t kMostRowsOfVector = 8;
// Rows of a register tile, which the template writes out one by one.
constexpr std::int64_t kMostRowsOfTile = 16;
// Sums of a work-item: beside what is read, in the first two caches.
constexpr std::int64_t kSumBytes = 64 << 10;
// Work-items a core, so that cores end together.
constexpr std::int64_t kStripsOfCore = 2;

// Of the tiles that `allowed` vectors may have, the one that passes over a vector of B in the fewest cycles.
template <class Allowed>
FewRowsTiles choose_tile(std::int64_t rows, const Target& target, const Allowed& allowed) {
  FewRowsTiles best;
  double best_cycles = 0;
  for (int vectors = 8; vectors >= 1; vectors /= 2) {
    if (!allowed(vectors)) continue;
    for (int height = static_cast<int>(std::min(rows, kMostRowsOfTile)); height >= 1; --height) {
      if (!fits_registers(height, vectors, target)) continue;
      const double cycles = static_cast<double>(ceil_div(rows, height)) * tile_step_cycles(height, vectors) / vectors;
      if (best_cycles > 0 && cycles > best_cycles) continue;
      best_cycles = cycles;
      best.rows = height;
      best.vectors = vectors;
    }
  }
  return best;
}

std::int64_t padded_rows(const Problem& p, const FewRowsTiles& tiles) { return ceil_div(p.m.typical, tiles.rows) * tiles.rows; }

// Strips of at most `fitting` columns, a multiple of `step`, as many for each core.
std::int64_t strip_of(const Problem& p, std::int64_t fitting, std::int64_t step, const Target& target) {
  const std::int64_t columns = p.n.typical, cores = target.compute_units, groups = p.g.typical,
                     least = std::max(ceil_div(columns, std::max(fitting, step)), ceil_div(kStripsOfCore * cores, groups)),
                     strips = groups % cores == 0 ? least : ceil_div(least, cores) * cores;
  return ceil_div(ceil_div(columns, strips), step) * step;
}

std::int64_t right_bytes(const Problem& p) { return p.n.typical * p.k.typical * 4; }

bool lies_by_rows(const Problem& p, const Target& target) {
  const bool one_vector = p.n.typical % (std::int64_t{2} * target.vector_width) != 0;
  return p.b.column_stride == 1 && right_bytes(p) >= kLeastBytesByRows && (!one_vector || p.m.typical <= kMostRowsOfVector);
}

}  // namespace

std::string_view refuse_few_rows(const Problem& p) {
  if (!p.b.in_place || p.b.guarded || p.b.stored != DType::f32 || p.taps != 1) return "B is not floats that are read in place";
  if (p.b.in_constant) return "B is a constant, which is packed";
  if (!p.m.known || !p.n.known) return "rows or columns are not known";
  if (!p.b.column_stride || !p.b.term_stride) return "B's rows or columns do not lie at equal distances";
  return {};
}

std::string_view few_rows_lose(const Problem& p) {
  if (p.m.typical > kMostFewRows) return "many rows pay for a copy of B";
  if (p.n.typical < kLeastWidth || p.k.typical < kLeastDepth) return "few columns or terms";
  return {};
}

std::optional<FewRowsTiles> choose_rows(const Problem& p, const Target& target, bool if_small) {
  if (!lies_by_rows(p, target) && !(if_small && p.b.column_stride == 1)) return std::nullopt;
  const int width = target.vector_width;
  FewRowsTiles tiles = choose_tile(
      p.m.typical, target, [&](int vectors) { return vectors == 1 || p.n.typical % (std::int64_t{vectors} * width) == 0; });
  tiles.strip = strip_of(p, kSumBytes / (4 * padded_rows(p, tiles)), std::int64_t{tiles.vectors} * width, target);
  return tiles;
}

std::optional<FewRowsTiles> choose_dots(const Problem& p, const Target& target, bool if_small) {
  const int width = target.vector_width;
  const bool loses = lies_by_rows(p, target) || right_bytes(p) < kLeastBytesByColumns;
  if ((loses && !if_small) || p.b.term_stride != 1 || !p.k.known || p.k.typical % width != 0) return std::nullopt;
  FewRowsTiles tiles = choose_tile(p.m.typical, target, [](int) { return true; });
  tiles.strip =
      strip_of(p, kSumBytes / (4 * padded_rows(p, tiles) * width), std::max<std::int64_t>(width, tiles.vectors), target);
  return tiles;
}

}  // namespace oclc

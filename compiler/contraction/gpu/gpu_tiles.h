// Tiles of a contraction on a GPU.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/targets/tuning.h"

namespace oclc {

// What all symbols count as, one after another, where a choice has to suit any size.
inline constexpr std::int64_t kAnyDims[] = {1, 16, 128};

struct GpuProduct {
  std::int64_t groups = 1, rows = 1, columns = 1, depth = 1;  // C[groups, rows, columns] sums over depth
  bool is_packed = false;           // B is constant, and A is copied as it lies in memory, four neighbours of the sum at a time
  bool scaled_steps = false;        // packed when the plan runs: each column has a scale for every step
  std::vector<GpuProduct> sizes{};  // instead of the numbers above, where these depend on symbols: one for each of kAnyDims

  // With `change` made to it and all its sizes.
  template <class F>
  GpuProduct with(F change) const {
    GpuProduct changed = *this;
    change(changed);
    for (GpuProduct& size : changed.sizes) change(size);
    return changed;
  }
  // What so many groups of tiles compute that share its terms.
  GpuProduct shared_by(std::int64_t shares) const {
    return with([&](GpuProduct& p) { p.groups *= shares, p.depth = ceil_div(p.depth, shares); });
  }
};

// `of(dim)` with kTypicalDim for symbols; if `is_any`, with its sizes.
template <class F>
GpuProduct product_of_sizes(bool is_any, F of) {
  GpuProduct product = of(kTypicalDim);
  for (const std::int64_t dim : kAnyDims)
    if (is_any) product.sizes.push_back(of(dim));
  return product;
}
// The geometric mean of `seconds(size)`, each with a launch.
double mean_seconds(const GpuProduct& product, const std::function<double(const GpuProduct&)>& seconds);

struct SubGroupTile {
  int rows = 0, columns = 0;
  int elements() const { return rows * columns; }
};

// The tile of C of a work-group, the terms of a step, and the tile of a work-item: BM, BN, BK, TM, TN of contraction_gpu.cl.
struct GpuTiles {
  int rows = 64, columns = 64, depth = 16;
  int item_rows = 4, item_columns = 4;

  // The tile of a sub-group on a matrix unit, as near to a square as powers of two come: WM, WN of the unit's template. Nothing
  // where the unit's own matrices are larger.
  std::optional<SubGroupTile> of_sub_group(const MatrixUnit& unit) const;

  int items() const { return rows / item_rows * (columns / item_columns); }
  // Of the two pairs of tiles, with the padding of their rows.
  std::int64_t local_bytes() const { return std::int64_t{8} * depth * (rows + 4 + columns + 4); }
};

bool uses_matrix_unit(const GpuTiles& tiles, const Target& target);
// Terms of a step on the unit.
int steps_of_unit(const MatrixUnit& unit);
// The tiles with the least estimated time among those that the target has room for: waste at the edges, local memory traffic of
// small tiles, compute units without work, latency of short launches; or what was timed for "gpu_tiles groups rows columns
// depth": rows, columns, depth, item_rows, item_columns of such tiles. Deterministic.
GpuTiles choose_gpu_tiles(const GpuProduct& product, const Target& target);
// What may be timed for that key.
std::vector<TunedChoice> gpu_tile_choices(const Target& target);
// That time in seconds, of any size the mean.
double gpu_product_seconds(const GpuProduct& product, const GpuTiles& tiles, const Target& target);

}  // namespace oclc

// Tiles of a contraction on the matrix units of NVIDIA's sm_90a.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/contraction/gpu/gpu_tiles.h"

namespace oclc {

// Parameters of the templates contraction_sm90a.cl and contraction_f16x2_sm90a.cl, and the tiles of contraction_gpu.cl that do
// the same launch's work where the matrix units are missing.
struct Sm90aTiles {
  bool halves = false;  // the template contraction_f16x2_sm90a.cl, or contraction_f16_sm90a.cl
  int warpgroups = 2, columns = 128;
  int rows = 64;           // of a warpgroup
  int groups_of_unit = 1;  // that run at once on a compute unit
  double efficiency = 1;   // share of the units' rate that many such tiles reach
  int sum_depth = 16, stages = 3, loaders = 128;
  bool ahead = true;
  GpuTiles portable;
  // The latter, of so many taps of a line, which tiles lose rows to; 0: not. See rounded_ahead.
  std::int64_t line = 0;
  static constexpr int kSlots = 3;

  std::string_view template_name() const {
    return line > 0 ? "contraction_f16_sm90a" : halves ? "contraction_f16x2_sm90a" : "contraction_sm90a";
  }
  int tile_rows() const { return warpgroups * rows; }
  bool loads_more = false;  // rows for the later taps of a line, beside those of the tile
  // Positions by which lines are longer, and so many rows fewer of a tile that no other has, if it does not load more.
  std::int64_t more_positions() const { return line > 1 ? line - 1 : 0; }
  std::int64_t own_rows() const { return tile_rows() - (loads_more ? 0 : more_positions()); }
  int items() const { return warpgroups * 128 + loaders; }
};

// The tiles that beat those of contraction_gpu.cl by estimate; nothing if none do or if the target has no such units.
std::optional<Sm90aTiles> choose_sm90a_tiles(const GpuProduct& product, const GpuTiles& rival, const Target& target);
// Such tiles of rounded halves for work-items that round what they load of A for a line of taps. `rows` are the product's with
// those that fill up lines, if they are known.
Sm90aTiles rounded_ahead(const Sm90aTiles& tiles, std::int64_t line, const GpuProduct& product,
                         std::optional<std::int64_t> rows, const Target& target);
double sm90a_seconds(const GpuProduct& product, const Sm90aTiles& tiles, const Target& target);
// Of that time, or beside it where sums are in work-items' registers, what storing the results takes.
double sm90a_store_seconds(const GpuProduct& product, const Sm90aTiles& tiles, const Target& target);
// All such tiles that there are for a product.
std::vector<Sm90aTiles> sm90a_candidates(const GpuProduct& product, const Target& target);
// The estimated time of a product by the better of the two, its operands loaded as vectors; with `more(size)` seconds of other
// launches.
double best_gpu_seconds(const GpuProduct& product, const Target& target,
                        const std::function<double(const GpuProduct&)>& more = nullptr);

}  // namespace oclc

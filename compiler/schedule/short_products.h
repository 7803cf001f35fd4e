// Products that are over sooner than a launch of them: a GPU's groups share their terms instead of making more of them.
#pragma once
#include <optional>

#include "compiler/schedule/pass.h"

namespace oclc {

// Parameters of the template contraction_short_gpu.cl: BM, BN, WN, SHARERS, AHEAD and HALVES.
struct ShortTiles {
  int rows = 16, columns = 16, warp_columns = 16, sharers = 8, ahead = 2;
  bool halves = false;
};

// Marks the short products of entries whose launches the host bounds, or nearly does where operands are rounded: what keeps the
// device busy for longer is left alone.
void short_products(Schedule& schedule, const ScheduleContext& context);

// The tiles of a marked product. As a part of a launch it leaves registers for a second group, and may have other tiles: its
// sums then differ from those of a launch of its own by rounding.
std::optional<ShortTiles> short_product_tiles(const Kernel& kernel, const Target& target, bool is_part = false);

}  // namespace oclc

// Products that are over sooner than a launch of them: a GPU's groups share their terms instead of making more of them.
#pragma once
#include <optional>

#include "compiler/schedule/pass.h"

namespace oclc {

// Marks the short products of entries whose launches the host bounds, or nearly does where operands are rounded: what keeps the
// device busy for longer is left alone.
void small_gemm(Schedule& schedule, const ScheduleContext& context);

// A marked product in numbers; nothing for others, and where its operands are no longer what was marked.
std::optional<SmallGemm> small_gemm_of(const Kernel& kernel);
// The tiles of a marked product. As a part of a launch it leaves registers for a second group, and may have other tiles: its
// sums then differ from those of a launch of its own by rounding.
std::optional<ShortTiles> small_gemm_tiles(const Kernel& kernel, const Target& target, bool is_part = false);

}  // namespace oclc

// Convolutions of few input channels, whose work-items copy a window of the image: template contraction_window_cpu.cl.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

// Of more channels the rows of a tile are read where they lie.
inline constexpr std::int64_t kMostWindowChannels = 7;
// Why a contraction is no such convolution; empty if it is.
std::string_view refuse_window(const Problem& problem);
// Nothing where no window of the image fits local memory, and where weights that are read in place would need padding.
std::optional<WindowTiles> choose_window(const Problem& problem, const Target& target);

}  // namespace oclc

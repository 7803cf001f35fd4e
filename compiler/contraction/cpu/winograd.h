// Convolutions of 3x3 and 5x5 taps by Winograd's transforms, fused: template contraction_winograd_cpu.cl.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

struct WinogradShape {
  std::int64_t tile = 2, taps = 3;  // T, R
  std::int64_t tiles = 1;           // all images'
  std::int64_t channels = 1, features = 1;
};

// The split with the least estimated time whose blocks fit the second-level cache; nothing if none does. Deterministic.
std::optional<WinogradTiles> choose_winograd_tiles(const WinogradShape& shape, const Target& target);

// Whether a pass asked for it.
bool asks_for_winograd(const Problem& problem);
// The split of a convolution that asks for Winograd. Nothing for others, and where the image is not read element by element
// with channels as neighbours or the channels fill no whole vectors.
std::optional<WinogradTiles> choose_winograd(const Problem& problem, const Target& target);

}  // namespace oclc

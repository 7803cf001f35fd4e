// Convolutions of 3x3 and 5x5 taps on a CPU through the template contraction_winograd_cpu.cl.
#pragma once
#include <optional>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_choice.h"
#include "compiler/codegen/contraction/contraction_image.h"

namespace oclc {

// How a convolution is cut into tiles of T x T outputs, and these into work-items.
struct WinogradTiles {
  int rows = 8, vectors = 3;  // register tile: tiles x (vectors * vector width)
  std::int64_t tiles = 8;     // of a work-item
  std::int64_t panels = 1;    // of a work-item
  std::int64_t local_bytes = 0;
};

struct WinogradShape {
  std::int64_t tile = 2, taps = 3;  // T, R
  std::int64_t tiles = 1;           // all images'
  std::int64_t channels = 1, features = 1;
};

// The split with the least estimated time whose blocks fit the second-level cache; nothing if none does. Deterministic.
std::optional<WinogradTiles> choose_winograd_tiles(const WinogradShape& shape, const Target& target);

// What a convolution that asks for the strategy conv_winograd_2 or _4 is computed by.
struct WinogradSplit {
  std::int64_t tile = 2, taps = 3;
  ConvolutionImage image;
  WinogradTiles tiles;
};

// Nothing for other strategies, and where the image is not read element by element with channels as neighbours or the channels
// fill no whole vectors.
std::optional<WinogradSplit> winograd_split(const ContractionView& view, const Target& target);

// Code for a convolution that has such a split and weights that are constant, or transformed by another kernel: see
// winograd_filters.h; nothing for others.
std::optional<GeneratedKernel> generate_winograd(const ContractionView& view, const ContractionChoice& choice,
                                                 const std::vector<Buffer>& buffers, const Target& target);

}  // namespace oclc

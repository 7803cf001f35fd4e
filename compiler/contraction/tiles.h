// What each strategy of a contraction is cut into: the tiles of a choice.
#pragma once
#include <cstdint>

#include "compiler/contraction/cpu/amx_tiles.h"
#include "compiler/contraction/gpu/sm90a_tiles.h"
#include "compiler/contraction/strategy_id.h"
#include "compiler/contraction/tiling.h"

namespace oclc {

// The operand that a work-item first copies into local memory, in the order of its inner loop; none: both are read in place.
enum class LocalCopy { none, a, b };

// Fused multiply-adds on all terms at once.
struct FmaTiles {
  LocalCopy local_copy = LocalCopy::none;
  ContractionTiles tiles;
  std::int64_t panel_width = 0;  // columns of a tile
  int row_lanes = 0;  // of a copy of A whose rows are innermost: the vectors that fill it; 0: terms of a row are neighbours
  bool copies_panels = false;  // of B, beside such a copy of A
};

// The same, chunk of terms by chunk, which are copied.
struct ChunkTiles {
  int rows = 6, vectors = 2;               // register tile: rows x (vectors * vector width)
  std::int64_t row_tiles = 1, panels = 1;  // of a work-item
  std::int64_t copied_tiles = 1;           // row tiles of A that are copied at a time
  std::int64_t terms = 64, taps = 1;       // of a chunk: terms of one tap, or whole taps
  int lanes = 1;                           // of the vectors that copy A
  bool rows_innermost = false;             // vectors of A's rows, not of its terms
  bool in_place = false;                   // A is not copied
  bool constant_a = false;                 // A is packed at compile time, tile after tile
};

// Few rows beside a right operand of run time, which is read where it lies: by its rows or by its columns.
struct FewRowsTiles {
  int rows = 1, vectors = 1;  // register tile
  std::int64_t strip = 1;     // columns of a work-item
};

// Rows of an image with few channels.
struct WindowTiles {
  int pixels = 6, vectors = 4;  // register tile: pixels of a row x (vectors * vector width)
  std::int64_t rows = 1;        // output rows of a work-item
  bool weights_in_place = false;
};

// How a convolution is cut into tiles of T x T outputs, and these into work-items.
struct WinogradTiles {
  int rows = 8, vectors = 3;  // register tile: tiles x (vectors * vector width)
  std::int64_t tiles = 8;     // of a work-item
  std::int64_t panels = 1;    // of a work-item
  std::int64_t local_bytes = 0;
  std::int64_t outputs = 2;  // T
  double cycles = 0;         // of a core
};

// A register tile of pairs, pairs of terms of a chunk, row tiles and panels of a work-item, and the cycles of a core.
struct StrassenTiles {
  int rows = 8, vectors = 3;
  std::int64_t terms = 128, row_tiles = 8, panels = 1;
  double cycles = 0;
};

// Products of rows with block-quantized weights.
struct QuantizedTiles {
  int bits = 20;
  int vectors = 1, side = 1;  // of a panel; panels that are read side by side
  std::int64_t panels = 1;    // of a work-item
};

// Parameters of the template contraction_small_gpu.cl: BM, BN, WN, SHARERS, AHEAD and HALVES.
struct ShortTiles {
  int rows = 16, columns = 16, warp_columns = 16, sharers = 8, ahead = 2;
  bool halves = false;
  double seconds = 0;
};

// On a GPU: tiles of the matrix units of sm_90a, if these gain, and those of the text for other devices. Its products are the
// contract's or more exact ones.
struct GpuChoice {
  Products products = Products::split;
  GpuTiles tiles;
  std::optional<Sm90aTiles> sm90a;
  double seconds = 0;
};

// One of the ways in which a GPU may compute a product, and the row that it belongs to.
struct GpuForm {
  StrategyId strategy = StrategyId::simt;
  GpuChoice choice;
};

}  // namespace oclc

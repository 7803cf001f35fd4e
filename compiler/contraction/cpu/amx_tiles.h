// Tiles of a contraction on the tile units of x86 processors, and what it costs there: template contraction_amx.cl.
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/targets/target.h"

namespace oclc {

struct AmxProduct {
  std::int64_t groups = 1, rows = 1, columns = 1, taps = 1, inner = 1;
  bool vectors = true;  // neighbours in k are neighbours in memory

  std::int64_t steps() const { return taps * ((inner + 31) / 32); }
};

struct AmxTiles {
  std::int64_t row_blocks = 1, panels = 1;  // of a work-item: 32 rows, 32 columns each
  std::int64_t chunk = 1;                   // steps of 32 terms that are split at a time
  bool sweep = false;                       // SWEEP of the template
  double seconds = 0;
};

// Bytes of a step of 64 terms of 32 columns, as integers of three bytes.
constexpr std::int64_t kDigitStepBytes = 6144;
// Parts of bfloat16 that stand for a float where it takes so many products.
constexpr int parts_of(int products) { return products == 6 ? 3 : products == 3 ? 2 : 1; }

// Floats of local memory: LOCAL_FLOATS of the template.
std::int64_t amx_local_floats(const AmxTiles& tiles, const AmxProduct& product, int products);
// The tiles of least estimated time; nothing if the target has no such units, or none of the target's contract.
std::optional<AmxTiles> choose_amx_tiles(const AmxProduct& product, const Target& target);
// The same by integers of three bytes: template contraction_digits_amx.cl, blocks of 16 rows, steps of 64 terms. Nothing where
// sums may be longer than 32 bits, have to be careful, or are of rounded operands.
std::optional<AmxTiles> choose_amx_digits(const AmxProduct& product, const Target& target);
// What weights from memory add to an estimate, beside what they take where products wait for them alone: they arrive while
// tiles multiply, in part. For estimates of different bytes.
double unhidden_seconds(std::int64_t bytes, const Target& target);

// A convolution whose work-items split a window of the image once for all taps: template contraction_window_amx.cl.
struct AmxWindowProduct {
  std::int64_t images = 1, rows = 1, columns = 1;  // of the output
  std::int64_t features = 1, channels = 1, taps = 1;
  std::int64_t phases = 1, pitch = 1, reach = 0;  // SY * SX, PITCH, REACH of the template

  // Of so many channels.
  std::int64_t steps(std::int64_t terms) const { return taps * ((channels + terms - 1) / terms); }
};

struct AmxWindowTiles {
  std::int64_t rows = 1, panels = 1;  // of a work-item: output rows, 32 features each
  std::int64_t taps_at_once = 1;      // AT_ONCE of the template of windows
  double seconds = 0;
};

std::optional<AmxWindowTiles> choose_amx_window(const AmxWindowProduct& product, const Target& target);
// By integers of three bytes: template contraction_window_digits_amx.cl.
std::optional<AmxWindowTiles> choose_amx_window_digits(const AmxWindowProduct& product, const Target& target);

// A convolution of few channels, whose work-items copy patches out of a window of the image: template
// contraction_patches_amx.cl.
struct AmxPatchProduct {
  std::int64_t images = 1, rows = 1, columns = 1;  // of the output
  std::int64_t features = 1, channels = 1;
  std::int64_t taps_y = 1, taps_x = 1, stride_y = 1, stride_x = 1, dilation_y = 1;

  std::int64_t steps() const { return (channels * taps_y * taps_x + 31) / 32; }
  // Elements of a row of taps that are copied at a time.
  std::int64_t segment() const { return taps_x <= 4 ? 4 : taps_x <= 8 ? 8 : 16; }
};

// Fewer channels than this have no vectors of their own.
constexpr std::int64_t kFewChannels = 16;

std::optional<AmxWindowTiles> choose_amx_patches(const AmxPatchProduct& product, const Target& target);

// Two operands of run time, chunks of which become parts: template contraction_chunks_amx.cl.
struct AmxPairProduct {
  std::int64_t groups = 1, rows = 1, columns = 1, taps = 1, inner = 1;
  bool turned_rows = false;                // neighbours of A in memory are rows
  bool any_terms = false;                  // `inner` is a guess
  double copy_rows = 0, copy_columns = 0;  // seconds of a core for 32 terms of 32 rows, or columns, before they are split

  std::int64_t steps() const { return taps * ((inner + 31) / 32); }
};

struct AmxPairTiles {
  std::int64_t row_blocks = 1, panels = 1;  // of a work-item: 32 rows, 32 columns each
  std::int64_t chunk = 1;                   // steps of 32 terms
  double seconds = 0;
};

std::optional<AmxPairTiles> choose_amx_pair(const AmxPairProduct& product, const Target& target);
// Estimated time of chunks of floats for the same.
double fma_pair_seconds(const AmxPairProduct& product, const Target& target);

// Estimated time of fused multiply-adds for the same.
double fma_seconds(const AmxProduct& product, const Target& target);
double fma_window_seconds(const AmxPatchProduct& product, const Target& target);
// Whether tiles are taken, given both estimates.
bool tiles_gain(double tile_seconds, double fma_seconds, const Target& target);

}  // namespace oclc

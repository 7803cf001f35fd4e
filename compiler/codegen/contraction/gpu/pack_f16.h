// Packing of constant right operands at compile time: into what the templates contraction_f16x2_sm90a.cl and
// contraction_f16_sm90a.cl copy to local memory, or, as fragments, into what contraction_small_gpu.cl loads to registers.
#pragma once
#include <string>

#include "compiler/codegen/contraction/pack.h"
#include "compiler/ir/division.h"

namespace oclc {

struct HalvesLayout {
  std::int64_t groups = 1, columns = 1, inner = 1, taps = 1;
  std::int64_t tile_columns = 128;  // BN
  int parts = 2;                    // halves of a number: PARTS
  bool flat = false;                // FLAT
  std::int64_t line = 1;            // LINE
  bool in_order = false;            // terms of a row follow one another: of contraction_f16_sm90a.cl
  bool fragments = false;           // of tiles of 8 columns: lane 4 * row + t has terms 4t .. 4t + 3 of each 16 side by side
  bool step_scales = false;         // STEP_SCALES: scales lie in every image, for those that are made when the plan runs

  std::int64_t steps() const { return flat ? ceil_div(taps * inner, kStep) : taps * ceil_div(inner, kStep); }
  // Of 32 terms of a tap; with `flat` of all terms, which are those of tap 0.
  std::int64_t image_of(std::int64_t tap, std::int64_t step) const {
    return flat ? step : (tap / line * (steps() / taps) + step) * line + tap % line;
  }
  std::int64_t column_tiles() const { return ceil_div(columns, tile_columns); }
  // In words of four bytes, as floats are.
  std::int64_t number_words() const { return parts * tile_columns * kStep / 2; }
  std::int64_t image_words() const { return number_words() + (step_scales ? kScaleWords : 0); }
  std::int64_t scales_at() const { return groups * column_tiles() * steps() * image_words(); }
  std::int64_t words() const { return scales_at() + (step_scales ? 0 : groups * column_tiles() * tile_columns); }

  static constexpr std::int64_t kStep = 32, kScaleWords = 128;
};

// The images, then the scales, of a constant of floats; typed as floats. Throws nothing.
HostTensor pack_halves(const HostTensor& source, const PackedOperand& where, const HalvesLayout& layout);

// Lines of portable OpenCL C that set the float4 `v` to elements k .. k + 3 of column n at tap `tap` of group g of `packed`.
std::string packed_halves_text(const HalvesLayout& layout, const std::string& packed);

}  // namespace oclc

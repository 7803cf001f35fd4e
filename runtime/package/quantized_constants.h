// Constants of quantised models are floats, integers of few bits times a scale, and lie in the file as these integers. They are
// widened once, when the file is opened. A section of them is
//
//   QuantizedHead | QuantizedRun[runs] | the stored bytes of each run, one after another
//
// A run's stored bytes: raw, the constants themselves; of bf16 or f32 `period` scales and `period` offsets as f32, the latter
// if `has_offsets`, and the integers, 8 or 4 bits each, the lower bits the first of a byte. Element i of a run is (integer +
// offset[i % period]) * scale[i % period]; with no period it is the integer. Of filters: stored_filters.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace oclc::package {

enum class StoredAs : std::uint8_t { raw, f32, bf16, filters };

struct QuantizedHead {
  std::uint64_t bytes;  // of the constants, widened
  std::uint64_t runs;
};
static_assert(sizeof(QuantizedHead) == 16);

struct QuantizedRun {
  std::uint64_t bytes = 0;   // widened
  std::uint32_t period = 0;  // of filters: channels
  StoredAs stored = StoredAs::raw;
  std::uint8_t bits = 8;         // of filters: of the window
  std::uint8_t has_offsets = 0;  // of filters: taps
  std::uint8_t lanes = 0;        // of filters: columns of the panel; of others 0

  std::uint64_t elements() const { return bytes / (stored == StoredAs::bf16 ? 2 : 4); }
  // Of the run in the file.
  std::uint64_t stored_bytes() const {
    if (stored == StoredAs::raw) return bytes;
    if (stored == StoredAs::filters)
      return std::uint64_t{bits} * has_offsets * 8 + std::uint64_t{has_offsets} * has_offsets * period * lanes * 4;
    return std::uint64_t{period} * (has_offsets != 0 ? 8 : 4) + (elements() * bits + 7) / 8;
  }
};
static_assert(sizeof(QuantizedRun) == 16);

// A run, and what is stored of it; nothing of a raw one, which the constants hold.
struct QuantizedPart {
  QuantizedRun run;
  std::vector<std::byte> stored;
};

// Of a section of that form, the bytes of the constants. Throws Error{corrupt} where the section does not hold what its runs
// say.
std::uint64_t widened_bytes(std::span<const std::byte> section);
// Writes them; the section has been checked by widened_bytes().
void widen(std::span<const std::byte> section, std::byte* to);
// Whether a checked section has a run of filters, which older runtimes do not know.
bool stores_filters(std::span<const std::byte> section);
// The run's constants.
void widen_run(const QuantizedRun& run, const std::byte* stored, std::byte* to);

}  // namespace oclc::package

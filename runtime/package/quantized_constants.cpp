#include "runtime/package/quantized_constants.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/package/error.h"
#include "runtime/package/stored_filters.h"

namespace oclc::package {
namespace {

[[noreturn]] void corrupt(const std::string& what) { throw Error(ErrorKind::corrupt, "the quantized constants: " + what); }

QuantizedRun run_at(std::span<const std::byte> section, std::uint64_t i) {
  QuantizedRun run;
  std::memcpy(&run, section.data() + sizeof(QuantizedHead) + i * sizeof run, sizeof run);
  return run;
}

void check_run(const QuantizedRun& run) {
  if (run.stored == StoredAs::filters) return check_filters(run);
  if (run.stored > StoredAs::filters || run.lanes != 0 || run.has_offsets > 1) corrupt("a run of no known form");
  if (run.stored == StoredAs::raw) return;
  if (run.bits != 4 && run.bits != 8) corrupt("integers of " + std::to_string(run.bits) + " bits, wanted 4 or 8");
  if (run.bytes % (run.stored == StoredAs::f32 ? 4 : 2) != 0) corrupt("a run that ends within an element");
  if (run.stored == StoredAs::bf16 && run.period != 0) corrupt("scales of numbers of 16 bits");
  if (run.period == 0 && run.has_offsets != 0) corrupt("offsets without scales");
  if (run.period > run.elements()) corrupt("more scales than elements");
}

int integer_at(const std::byte* integers, std::uint64_t i, int bits) {
  if (bits == 8) return static_cast<std::int8_t>(integers[i]);
  const int nibble = std::to_integer<int>(integers[i / 2]) >> (i % 2 * 4) & 15;
  return nibble < 8 ? nibble : nibble - 16;
}

// Elements of scales and offsets, which lie anywhere.
class Numbers {
 public:
  explicit Numbers(const std::byte* at, std::uint32_t count) : values_(count) {
    if (count > 0) std::memcpy(values_.data(), at, std::size_t{count} * 4);
  }
  const float* data() const { return values_.data(); }

 private:
  std::vector<float> values_;
};

void widen_floats(const QuantizedRun& run, const std::byte* stored, std::byte* to) {
  const std::uint64_t count = run.elements(), period = run.period == 0 ? count : run.period;
  const Numbers scales(stored, run.period),
      offsets(stored + std::size_t{run.period} * 4, run.has_offsets != 0 ? run.period : 0);
  const std::byte* integers = stored + std::size_t{run.period} * (run.has_offsets != 0 ? 8 : 4);
  std::vector<float> row(static_cast<std::size_t>(std::min<std::uint64_t>(period, 4096)));
  for (std::uint64_t first = 0; first < count;) {
    const std::uint64_t phase = first % period, n = std::min({count - first, period - phase, std::uint64_t{row.size()}});
    for (std::uint64_t i = 0; i < n; ++i) row[i] = static_cast<float>(integer_at(integers, first + i, run.bits));
    if (run.has_offsets != 0)
      for (std::uint64_t i = 0; i < n; ++i) row[i] += offsets.data()[phase + i];
    if (run.period != 0)
      for (std::uint64_t i = 0; i < n; ++i) row[i] *= scales.data()[phase + i];
    std::memcpy(to + first * 4, row.data(), n * 4);
    first += n;
  }
}

// Integers of 8 bits have no more bits than bfloat16.
void widen_halves(const QuantizedRun& run, const std::byte* stored, std::byte* to) {
  for (std::uint64_t i = 0; i < run.elements(); ++i) {
    const auto value = static_cast<float>(integer_at(stored, i, run.bits));
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    const auto half = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(to + i * 2, &half, 2);
  }
}

}  // namespace

std::uint64_t widened_bytes(std::span<const std::byte> section) {
  QuantizedHead head{};
  if (section.size() < sizeof head) corrupt("truncated within the head");
  std::memcpy(&head, section.data(), sizeof head);
  if (head.runs > (section.size() - sizeof head) / sizeof(QuantizedRun)) corrupt("truncated within the table of runs");
  std::uint64_t bytes = 0, stored = sizeof head + head.runs * sizeof(QuantizedRun);
  for (std::uint64_t i = 0; i < head.runs; ++i) {
    const QuantizedRun run = run_at(section, i);
    // Stored integers are at most eight times smaller than what they are.
    if (run.bytes > section.size() * 8) corrupt("a run of more constants than the section stores");
    check_run(run);
    bytes += run.bytes;
    stored += run.stored_bytes();
    if (stored > section.size()) corrupt("runs reach past the end of the section");
  }
  if (stored != section.size()) corrupt("bytes after the last run");
  if (bytes != head.bytes) corrupt("the runs do not add up to the constants");
  return bytes;
}

void widen_run(const QuantizedRun& run, const std::byte* stored, std::byte* to) {
  if (run.stored == StoredAs::raw) {
    std::memcpy(to, stored, run.bytes);
  } else if (run.stored == StoredAs::f32) {
    widen_floats(run, stored, to);
  } else if (run.stored == StoredAs::filters) {
    transform_filters(run, stored, to);
  } else {
    widen_halves(run, stored, to);
  }
}

bool stores_filters(std::span<const std::byte> section) {
  QuantizedHead head{};
  std::memcpy(&head, section.data(), sizeof head);
  for (std::uint64_t i = 0; i < head.runs; ++i)
    if (run_at(section, i).stored == StoredAs::filters) return true;
  return false;
}

void widen(std::span<const std::byte> section, std::byte* to) {
  QuantizedHead head{};
  std::memcpy(&head, section.data(), sizeof head);
  const std::byte* stored = section.data() + sizeof head + head.runs * sizeof(QuantizedRun);
  for (std::uint64_t i = 0; i < head.runs; ++i) {
    const QuantizedRun run = run_at(section, i);
    widen_run(run, stored, to);
    stored += run.stored_bytes();
    to += run.bytes;
  }
}

}  // namespace oclc::package

#include "compiler/plan/quantized_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "compiler/contraction/multiples.h"

namespace oclc {
namespace {

using package::QuantizedPart;
using package::QuantizedRun;
using package::StoredAs;

// Elements of a run that is tried as a whole, then by halves, and of the shortest.
constexpr std::int64_t kLongest = 1 << 16, kShortest = 512;
// Strides of elements that share a scale: one scale for all, and the widths of packed panels. Each scale has at least
// kLeastOfScale elements.
constexpr std::uint32_t kPeriods[] = {1, 16, 32, 48, 64, 8, 24, 4, 12, 96, 128};
constexpr std::int64_t kLeastOfScale = 16;
// What shows first that numbers are floats.
constexpr std::int64_t kSampled = 32;
// Of a tensor's bytes; else it stays as it is.
constexpr double kMostStored = 0.6;

QuantizedRun raw_run(std::int64_t bytes) {
  QuantizedRun run;
  run.bytes = static_cast<std::uint64_t>(bytes);
  return run;
}

void put_integer(std::byte* integers, std::int64_t i, int q, int bits) {
  integers[i * bits / 8] |= static_cast<std::byte>((q & ((1 << bits) - 1)) << (bits == 4 ? i % 2 * 4 : 0));
}

// What widens to the same bits.
bool is_same(const QuantizedPart& part, const std::byte* wanted) {
  std::vector<std::byte> found(part.run.bytes);
  package::widen_run(part.run, part.stored.data(), found.data());
  return std::memcmp(found.data(), wanted, found.size()) == 0;
}

std::optional<QuantizedPart> as_integers(std::span<const float> numbers, StoredAs stored, const std::byte* source) {
  if (!std::all_of(numbers.begin(), numbers.end(), [](float x) { return x >= -128 && x <= 127 && std::nearbyint(x) == x; }))
    return std::nullopt;
  const bool few = std::all_of(numbers.begin(), numbers.end(), [](float x) { return x >= -8 && x <= 7; });
  QuantizedPart part;
  part.run.bytes = numbers.size() * (stored == StoredAs::f32 ? 4 : 2);
  part.run.stored = stored;
  part.run.bits = few ? 4 : 8;
  part.stored.resize(part.run.stored_bytes());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    put_integer(part.stored.data(), static_cast<std::int64_t>(i), static_cast<int>(numbers[i]), part.run.bits);
  return is_same(part, source) ? std::optional(part) : std::nullopt;
}

std::optional<QuantizedPart> with_scales(std::span<const float> numbers, std::uint32_t period, int bits) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  QuantizedPart part;
  part.run.bytes = numbers.size() * 4;
  part.run.stored = StoredAs::f32;
  part.run.bits = static_cast<std::uint8_t>(bits);
  part.run.period = period;
  std::vector<Multiples> scales;
  std::vector<float> own;
  for (std::int64_t i = 0; i < std::min(count, kSampled * period); i += period)
    own.push_back(numbers[static_cast<std::size_t>(i)]);
  if (!multiples_of(own, bits)) return std::nullopt;
  const int half = 1 << (bits - 1);
  for (std::uint32_t phase = 0; phase < period; ++phase) {
    own.clear();
    for (std::int64_t i = phase; i < count; i += period) own.push_back(numbers[static_cast<std::size_t>(i)]);
    const auto multiples = multiples_of(own, bits);
    if (!multiples) return std::nullopt;
    if (multiples->low < -half || multiples->high >= half) part.run.has_offsets = 1;
    scales.push_back(*multiples);
  }
  part.stored.resize(part.run.stored_bytes());
  const std::size_t head = std::size_t{period} * (part.run.has_offsets != 0 ? 8 : 4);
  for (std::uint32_t phase = 0; phase < period; ++phase) {
    const Multiples& m = scales[phase];
    const int offset = m.low < -half || m.high >= half ? m.low + half : 0;
    const auto shift = static_cast<float>(offset);
    std::memcpy(part.stored.data() + phase * 4, &m.scale, 4);
    if (part.run.has_offsets != 0) std::memcpy(part.stored.data() + (period + phase) * 4, &shift, 4);
    for (std::int64_t i = phase; i < count; i += period) {
      const double x = numbers[static_cast<std::size_t>(i)];
      const int q = m.scale == 0 ? 0 : static_cast<int>(std::nearbyint(x / static_cast<double>(m.scale)));
      put_integer(part.stored.data() + head, i, q - offset, bits);
    }
  }
  return is_same(part, reinterpret_cast<const std::byte*>(numbers.data())) ? std::optional(part) : std::nullopt;
}

class Parts {
 public:
  explicit Parts(const HostTensor& tensor) : tensor_(tensor), half_(tensor.dtype() == DType::bf16) {}

  std::vector<QuantizedPart> run() {
    for (std::int64_t at = 0; at < tensor_.elements(); at += kLongest) add(at, std::min(kLongest, tensor_.elements() - at));
    std::uint64_t stored = 0;
    for (const QuantizedPart& part : parts_) stored += part.run.stored_bytes();
    if (static_cast<double>(stored) > kMostStored * static_cast<double>(tensor_.bytes())) parts_.clear();
    return std::move(parts_);
  }

 private:
  void add(std::int64_t first, std::int64_t count) {
    if (auto part = stored(first, count)) {
      parts_.push_back(std::move(*part));
    } else if (count >= 2 * kShortest && !is_hopeless(first, count)) {
      const std::int64_t left = count / 2 / kShortest * kShortest;
      add(first, left);
      add(first + left, count - left);
    } else {
      add_raw(count * (half_ ? 2 : 4));
    }
  }

  void add_raw(std::int64_t bytes) {
    if (!parts_.empty() && parts_.back().run.stored == StoredAs::raw)
      parts_.back().run.bytes += static_cast<std::uint64_t>(bytes);
    else
      parts_.push_back({raw_run(bytes), {}});
  }

  // Where a short run at the beginning is of floats, and one in the middle, all are taken to be.
  bool is_hopeless(std::int64_t first, std::int64_t count) {
    return count == kLongest && !stored(first, kShortest) && !stored(first + count / 2, kShortest) &&
           !stored(first + count / 4, kShortest);
  }

  std::optional<QuantizedPart> stored(std::int64_t first, std::int64_t count) {
    numbers_.resize(static_cast<std::size_t>(count));
    const std::byte* source = tensor_.data() + first * (half_ ? 2 : 4);
    if (half_) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, source + i * 2, 2);
        numbers_[static_cast<std::size_t>(i)] = bfloat_to_float(bits);
      }
      return as_integers(numbers_, StoredAs::bf16, source);
    }
    std::memcpy(numbers_.data(), source, static_cast<std::size_t>(count) * 4);
    if (auto part = as_integers(numbers_, StoredAs::f32, source)) return part;
    for (const int bits : {4, 8}) {
      for (const std::uint32_t period : kPeriods) {
        if (count < kLeastOfScale * std::int64_t{period}) continue;
        if (auto part = with_scales(numbers_, period, bits)) return part;
      }
    }
    return std::nullopt;
  }

  const HostTensor& tensor_;
  const bool half_;
  std::vector<float> numbers_;
  std::vector<QuantizedPart> parts_;
};

// Blocks of zeros among other bytes: padding, and digits that integers of few bits leave empty.
constexpr std::size_t kZeroBlock = 1024;

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// Zeros are floats of the integer 0, whatever the tensor's type.
std::vector<QuantizedPart> parts_of_bytes(std::span<const std::byte> bytes) {
  std::vector<QuantizedPart> parts;
  std::uint64_t stored = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kZeroBlock) {
    const auto block = bytes.subspan(at, std::min(kZeroBlock, bytes.size() - at));
    const bool zero = block.size() == kZeroBlock && is_zero(block);
    if (parts.empty() || (parts.back().run.stored == StoredAs::f32) != zero) {
      parts.push_back({raw_run(0), {}});
      if (zero) parts.back().run.stored = StoredAs::f32;
      if (zero) parts.back().run.bits = 4;
    }
    parts.back().run.bytes += block.size();
  }
  for (QuantizedPart& part : parts) {
    if (part.run.stored == StoredAs::f32) part.stored.resize(part.run.stored_bytes());
    stored += part.run.stored_bytes() + sizeof(QuantizedRun);
  }
  if (static_cast<double>(stored) > kMostStored * static_cast<double>(bytes.size())) parts.clear();
  return parts;
}

}  // namespace

std::vector<package::QuantizedPart> quantized_parts(const HostTensor& tensor) {
  if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::bf16) return parts_of_bytes({tensor.data(), tensor.bytes()});
  if (tensor.elements() < kShortest) return {};
  return Parts(tensor).run();
}

StoredConstant StoredConstant::of(const HostTensor& initial) {
  return {std::make_shared<HostTensor>(initial), quantized_parts(initial)};
}

StoredConstant StoredConstant::of(const Buffer& buffer) {
  if (!buffer.stored) return of(buffer.constant);
  return {std::make_shared<HostTensor>(buffer.constant), *buffer.stored};
}

}  // namespace oclc

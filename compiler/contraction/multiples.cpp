#include "compiler/contraction/multiples.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace oclc {
namespace {

// Of a number beside the integer times the scale: both are rounded.
constexpr double kRounding = 0x1.8p-23;

// The nearest integer; of numbers that are small, by a conversion, since a call for each would take most of the time.
int nearest(double x) { return static_cast<int>(x < 0 ? x - 0.5 : x + 0.5); }

// Integers times `scale`; nothing where a number is none, or they lie too far apart.
std::optional<Multiples> multiples_by(std::span<const float> numbers, double scale, int most) {
  Multiples m{static_cast<float>(scale), most, -most};
  const double reciprocal = 1 / scale;
  for (const float number : numbers) {
    const double x = number;
    const int q = nearest(x * reciprocal);
    if (std::fabs(x - q * scale) > kRounding * std::fabs(x)) return std::nullopt;
    m.low = std::min(m.low, q);
    m.high = std::max(m.high, q);
  }
  return m.high - m.low <= most ? std::optional(m) : std::nullopt;
}

// The scale that the numbers have in the mean: that of the smallest has its rounding.
double mean_scale(std::span<const float> numbers, double scale) {
  const double reciprocal = 1 / scale;
  double sum = 0;
  std::int64_t weights = 0;
  for (const float number : numbers) {
    const double x = number;
    const int q = nearest(x * reciprocal);
    sum += q < 0 ? -x : x;
    weights += q < 0 ? -q : q;
  }
  return static_cast<double>(static_cast<float>(sum / static_cast<double>(weights)));
}

}  // namespace

std::optional<Multiples> multiples_of(std::span<const float> numbers, int bits) {
  const int most = (1 << bits) - 1;
  double least = std::numeric_limits<double>::infinity(), largest = 0;
  for (const float x : numbers) {
    const double size = std::fabs(static_cast<double>(x));
    if (!(size <= std::numeric_limits<float>::max())) return std::nullopt;
    if (size == 0) continue;
    least = std::min(least, size);
    largest = std::max(largest, size);
  }
  if (largest == 0) return Multiples{};
  // The smallest number is an integer times the scale.
  for (int i = 1; i <= most && largest * i <= least * (most + 0.5); ++i) {
    const double scale = least / i;
    if (scale < std::numeric_limits<float>::min()) return std::nullopt;
    if (!multiples_by(numbers, scale, most)) continue;
    if (const auto exact = multiples_by(numbers, mean_scale(numbers, scale), most)) return exact;
  }
  return std::nullopt;
}

}  // namespace oclc

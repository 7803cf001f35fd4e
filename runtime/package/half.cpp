#include "runtime/package/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace oclc::package {

using plan::DType;

float widened(DType dtype, std::uint16_t bits) {
  if (dtype == DType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double value = exponent == 31  ? (fraction ? std::numeric_limits<double>::quiet_NaN() : HUGE_VAL)
                       : exponent != 0 ? std::ldexp(1024 + fraction, exponent - 25)
                                       : std::ldexp(fraction, -24);
  return static_cast<float>(bits & 0x8000 ? -value : value);
}

std::uint16_t narrowed(DType dtype, double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const int digits = dtype == DType::bf16 ? 8 : 11, least = dtype == DType::bf16 ? -133 : -24;
  const auto infinity = static_cast<std::uint16_t>(dtype == DType::bf16 ? 0x7f80 : 0x7c00);
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | infinity >> 1);
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int scale = std::max(exponent - digits, least);  // of the last bit
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
  // Units of 2^scale; a normal number's implied bit adds one to the exponent field.
  const std::uint32_t bits = (static_cast<std::uint32_t>(scale - least) << (digits - 1)) + units;
  return static_cast<std::uint16_t>(sign | (bits > infinity ? infinity : bits));
}

}  // namespace oclc::package

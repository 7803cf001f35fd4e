#include "runtime/package/narrow.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace oclc::package {
namespace {

using plan::DType;

constexpr NarrowFloat kE4M3FN{3, 7, 7, 0x7e, 0x7f, 0x7f, false}, kE4M3FNUZ{3, 8, 7, 0x7f, 0x80, 0x80, true},
    kE5M2{2, 15, 7, 0x7b, 0x7c, 0x7e, false}, kE5M2FNUZ{2, 16, 7, 0x7f, 0x80, 0x80, true}, kE2M1{1, 1, 3, 0x7, 0x7, 0x7, false};

float magnitude(const NarrowFloat& f, std::uint32_t code) {
  const auto exponent = static_cast<int>(code >> f.mantissa_bits);
  const auto mantissa = static_cast<float>(code & ((1u << f.mantissa_bits) - 1));
  const auto one = static_cast<float>(1 << f.mantissa_bits);
  return exponent == 0 ? std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits)
                       : std::ldexp(one + mantissa, exponent - f.bias - f.mantissa_bits);
}

// The code of the nearest number, as if there were no largest one.
std::uint32_t nearest(const NarrowFloat& f, std::uint32_t bits) {
  const int dropped = 23 - f.mantissa_bits;
  if (static_cast<int>(bits >> 23) - 127 + f.bias < 1)  // below the normal numbers: units of the smallest
    return static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(bits), f.bias - 1 + f.mantissa_bits)));
  const std::uint32_t rounded = bits + (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1u);
  return (rounded >> dropped) - (static_cast<std::uint32_t>(127 - f.bias) << f.mantissa_bits);
}

// f8e8m0: an exponent alone.
constexpr int kPowerBias = 127, kPowerNaN = 255;

std::uint8_t power_bits(float value) {
  const std::uint32_t size = std::bit_cast<std::uint32_t>(value) & 0x7fffffffu, exponent = size >> 23;
  if (exponent == 255) return kPowerNaN;
  // The smallest one lies among the floats that are not normal.
  const std::uint32_t fraction = (size & 0x7fffffu) > (exponent == 0 ? 0x400000u : 0u) ? 1 : 0;
  return static_cast<std::uint8_t>(std::min(exponent + fraction, std::uint32_t{kPowerNaN - 1}));
}

// An integer of 4 or 2 bits by its low bits.
int low_bits(DType dtype, int whole) {
  const int width = narrow_width(dtype), low = whole & ((1 << width) - 1), sign = 1 << (width - 1);
  return dtype == DType::u4 || dtype == DType::u2 ? low : (low ^ sign) - sign;
}

}  // namespace

bool is_narrow(DType dtype) { return dtype >= DType::f8e4m3fn && dtype <= DType::u2; }
bool is_narrow_float(DType dtype) { return (dtype >= DType::f8e4m3fn && dtype <= DType::f4e2m1) || dtype == DType::f8e8m0; }

int narrow_width(DType dtype) {
  if (dtype == DType::i2 || dtype == DType::u2) return 2;
  return dtype == DType::f4e2m1 || dtype == DType::i4 || dtype == DType::u4 ? 4 : 8;
}

const NarrowFloat& narrow_float(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn:
      return kE4M3FN;
    case DType::f8e4m3fnuz:
      return kE4M3FNUZ;
    case DType::f8e5m2:
      return kE5M2;
    case DType::f8e5m2fnuz:
      return kE5M2FNUZ;
    default:
      return kE2M1;
  }
}

float narrow_value(DType dtype, std::uint8_t bits) {
  if (!is_narrow_float(dtype)) return static_cast<float>(low_bits(dtype, bits));
  if (dtype == DType::f8e8m0) return bits == kPowerNaN ? std::nanf("") : std::ldexp(1.0f, bits - kPowerBias);
  const NarrowFloat& f = narrow_float(dtype);
  const std::uint32_t sign = (bits >> f.sign_shift) & 1u, code = bits & ((1u << f.sign_shift) - 1);
  if (f.one_zero && sign && code == 0) return std::nanf("");
  const float value = code <= f.largest                               ? magnitude(f, code)
                      : code == f.too_large && code != f.not_a_number ? INFINITY
                                                                      : std::nanf("");
  return sign ? -value : value;
}

std::uint8_t narrow_bits(DType dtype, float value) {
  if (!is_narrow_float(dtype)) {
    const int whole = std::isfinite(value) && std::fabs(value) < 0x1p30f ? static_cast<int>(value) : 0;
    return static_cast<std::uint8_t>(low_bits(dtype, whole));
  }
  if (dtype == DType::f8e8m0) return power_bits(value);
  const NarrowFloat& f = narrow_float(dtype);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = bits & 0x7fffffffu;
  std::uint32_t code = size > 0x7f800000u ? f.not_a_number : nearest(f, size);
  if (size <= 0x7f800000u && code > f.largest) code = f.too_large;
  // Of NaN, where there is none, the positive number.
  const bool signless = f.one_zero ? code == 0 || code == f.not_a_number : size > 0x7f800000u && f.not_a_number == f.largest;
  return static_cast<std::uint8_t>(code | (signless ? 0 : bits >> 31 << f.sign_shift));
}

float largest_narrow(DType dtype) {
  if (dtype == DType::f8e8m0) return std::ldexp(1.0f, kPowerNaN - 1 - kPowerBias);
  return magnitude(narrow_float(dtype), narrow_float(dtype).largest);
}

}  // namespace oclc::package

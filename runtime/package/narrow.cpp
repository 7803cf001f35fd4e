#include "runtime/package/narrow.h"

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

}  // namespace

bool is_narrow(DType dtype) { return dtype >= DType::f8e4m3fn && dtype <= DType::u4; }
bool is_narrow_float(DType dtype) { return dtype >= DType::f8e4m3fn && dtype <= DType::f4e2m1; }

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
  if (dtype == DType::u4) return static_cast<float>(bits & 15);
  if (dtype == DType::i4) return static_cast<float>(static_cast<int>((bits & 15) ^ 8) - 8);
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
    return static_cast<std::uint8_t>(dtype == DType::u4 ? whole & 15 : ((whole & 15) ^ 8) - 8);
  }
  const NarrowFloat& f = narrow_float(dtype);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = bits & 0x7fffffffu;
  std::uint32_t code = size > 0x7f800000u ? f.not_a_number : nearest(f, size);
  if (size <= 0x7f800000u && code > f.largest) code = f.too_large;
  // Of NaN, where there is none, the positive number.
  const bool signless = f.one_zero ? code == 0 || code == f.not_a_number : size > 0x7f800000u && f.not_a_number == f.largest;
  return static_cast<std::uint8_t>(code | (signless ? 0 : bits >> 31 << f.sign_shift));
}

float largest_narrow(DType dtype) { return magnitude(narrow_float(dtype), narrow_float(dtype).largest); }

}  // namespace oclc::package

#include "runtime/scalar.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "runtime/failure.h"

namespace oclc::runtime {
namespace {

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
double load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

template <class T>
void store_integer(std::byte* to, double value, oclc_dtype dtype) {
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double high = std::ldexp(1.0, std::numeric_limits<T>::digits);  // first value too large
  if (std::isnan(value) || value < low || value >= high || value != std::trunc(value))
    throw Failure(OCLC_E_ARGUMENT,
                  std::string("wanted a number of type ") + oclc_dtype_name(dtype) + ", found " + std::to_string(value));
  store(to, static_cast<T>(value));
}

std::uint16_t half_bits(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (magnitude >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int scale = std::max(exponent - 11, -24);  // of the last bit
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
  // Units of 2^scale: subnormals at scale -24; a normal's implied bit adds one to the exponent field below it.
  return static_cast<std::uint16_t>(sign + (static_cast<std::uint32_t>(scale + 24) << 10) + units);
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = exponent == 31 ? (fraction ? std::nan("") : HUGE_VAL)
                 : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -value : value;
}

}  // namespace

void put_scalar(std::byte* to, oclc_dtype dtype, double value) {
  switch (dtype) {
    case OCLC_F32:
      return store(to, static_cast<float>(value));
    case OCLC_F64:
      return store(to, value);
    case OCLC_F16:
      return store(to, half_bits(value));
    case OCLC_BF16: {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      if (std::isnan(value)) return store(to, std::uint16_t{0x7fc0});
      return store(to, static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16));
    }
    case OCLC_I8:
      return store_integer<std::int8_t>(to, value, dtype);
    case OCLC_I16:
      return store_integer<std::int16_t>(to, value, dtype);
    case OCLC_I32:
      return store_integer<std::int32_t>(to, value, dtype);
    case OCLC_I64:
      return store_integer<std::int64_t>(to, value, dtype);
    case OCLC_U8:
      return store_integer<std::uint8_t>(to, value, dtype);
    case OCLC_U16:
      return store_integer<std::uint16_t>(to, value, dtype);
    case OCLC_U32:
      return store_integer<std::uint32_t>(to, value, dtype);
    case OCLC_U64:
      return store_integer<std::uint64_t>(to, value, dtype);
    case OCLC_BOOL:
      return store(to, static_cast<std::uint8_t>(value != 0));
    case OCLC_STRING:
      break;  // no state holds strings
  }
}

double get_scalar(const std::byte* from, oclc_dtype dtype) {
  switch (dtype) {
    case OCLC_F32:
      return load<float>(from);
    case OCLC_F64:
      return load<double>(from);
    case OCLC_F16: {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, sizeof bits);
      return half_value(bits);
    }
    case OCLC_BF16: {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, sizeof bits);
      return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
    }
    case OCLC_I8:
      return load<std::int8_t>(from);
    case OCLC_I16:
      return load<std::int16_t>(from);
    case OCLC_I32:
      return load<std::int32_t>(from);
    case OCLC_I64:
      return load<std::int64_t>(from);
    case OCLC_U16:
      return load<std::uint16_t>(from);
    case OCLC_U32:
      return load<std::uint32_t>(from);
    case OCLC_U64:
      return load<std::uint64_t>(from);
    default:
      return load<std::uint8_t>(from);
  }
}

}  // namespace oclc::runtime

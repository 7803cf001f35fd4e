#include "runtime/session/scalar.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "runtime/failure.h"
#include "runtime/package/half.h"
#include "runtime/package/narrow.h"

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

double load_half(const std::byte* from, oclc_dtype dtype) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return static_cast<double>(package::widened(static_cast<plan::DType>(dtype), bits));
}

}  // namespace

void put_scalar(std::byte* to, oclc_dtype dtype, double value) {
  switch (dtype) {
    case OCLC_F32:
      return store(to, static_cast<float>(value));
    case OCLC_F64:
      return store(to, value);
    case OCLC_F16:
      return store(to, package::narrowed(plan::DType::f16, value));
    case OCLC_BF16:
      return store(to, package::narrowed(plan::DType::bf16, static_cast<double>(static_cast<float>(value))));
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
    case OCLC_F8E4M3FN:
    case OCLC_F8E4M3FNUZ:
    case OCLC_F8E5M2:
    case OCLC_F8E5M2FNUZ:
    case OCLC_F4E2M1:
    case OCLC_I4:
    case OCLC_U4:
    case OCLC_F8E8M0:
    case OCLC_I2:
    case OCLC_U2:
      return store(to, package::narrow_bits(static_cast<plan::DType>(dtype), static_cast<float>(value)));
  }
}

double get_scalar(const std::byte* from, oclc_dtype dtype) {
  switch (dtype) {
    case OCLC_F32:
      return load<float>(from);
    case OCLC_F64:
      return load<double>(from);
    case OCLC_F16:
    case OCLC_BF16:
      return load_half(from, dtype);
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
    case OCLC_F8E4M3FN:
    case OCLC_F8E4M3FNUZ:
    case OCLC_F8E5M2:
    case OCLC_F8E5M2FNUZ:
    case OCLC_F4E2M1:
    case OCLC_I4:
    case OCLC_U4:
    case OCLC_F8E8M0:
    case OCLC_I2:
    case OCLC_U2:
      return static_cast<double>(package::narrow_value(static_cast<plan::DType>(dtype), std::to_integer<std::uint8_t>(*from)));
    default:
      return load<std::uint8_t>(from);
  }
}

}  // namespace oclc::runtime

// Integers of floating-point numbers, whatever these are.
#pragma once
#include <cstdint>

namespace oclc {

// C's conversion towards zero, made total: 0 of NaN; numbers outside of int64_t give its nearest end.
constexpr std::int64_t integer_of(double value) {
  if (value != value) return 0;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  if (value < -9223372036854775808.0) return INT64_MIN;
  return static_cast<std::int64_t>(value);
}

}  // namespace oclc

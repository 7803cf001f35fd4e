// Numbers of fewer than 16 bits that only conversions compute with, one a byte in memory: floats of 8 and 4 bits, integers
// of 4 and 2.
#pragma once
#include <cstdint>

#include "plan_generated.h"

namespace oclc::package {

bool is_narrow(plan::DType dtype);
bool is_narrow_float(plan::DType dtype);
// Of a narrow number that count: 8, 4 or 2.
int narrow_width(plan::DType dtype);

// The value of a byte; of an f4 or an integer, its low bits count.
float narrow_value(plan::DType dtype, std::uint8_t bits);
// The byte of a value. Floats: the nearest, ties to even; what is too large is infinite, NaN where there is no infinity, and
// the largest where there is no NaN either. f8e8m0, which has powers of two alone: of the number without its sign the next one
// that is not below it, at most the largest; infinity is NaN. Integers: without the fraction, the low bits of that; signed
// ones fill the byte.
std::uint8_t narrow_bits(plan::DType dtype, float value);
// The largest finite value of a float.
float largest_narrow(plan::DType dtype);

// How the bits of a float other than f8e8m0 are to be read: sign, exponent, mantissa. Codes are bits without the sign.
struct NarrowFloat {
  int mantissa_bits, bias, sign_shift;
  std::uint32_t largest;       // code of the largest finite number; larger ones are NaN, or the one behind it is infinity
  std::uint32_t too_large;     // code of what is larger
  std::uint32_t not_a_number;  // its code
  bool one_zero;               // the code of -0 is NaN, the only one
};
const NarrowFloat& narrow_float(plan::DType dtype);

}  // namespace oclc::package

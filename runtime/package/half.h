// Floating-point numbers of 16 bits, on the host.
#pragma once
#include <cstdint>

#include "plan_generated.h"

namespace oclc::package {

// The value of the bits of an f16 or a bf16.
float widened(plan::DType dtype, std::uint16_t bits);
// The bits of the nearest f16 or bf16, ties to even; what is too large is infinite, and NaN is quiet and positive.
std::uint16_t narrowed(plan::DType dtype, double value);

}  // namespace oclc::package

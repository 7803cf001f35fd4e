// Single numbers of any element type.
#pragma once
#include <cstddef>

#include "oclc/oclc.h"

namespace oclc::runtime {

// Rounded to `dtype` as C++ conversions do, half and bfloat16 to nearest. OCLC_E_ARGUMENT if an integer type cannot hold it.
void put_scalar(std::byte* to, oclc_dtype dtype, double value);
double get_scalar(const std::byte* from, oclc_dtype dtype);

}  // namespace oclc::runtime

// Types and numbers as OpenCL C writes them.
#pragma once
#include <string>
#include <string_view>

#include "compiler/ir/tensor.h"

namespace oclc {

std::string_view c_type(DType dtype);      // "float", "long", ...; memory type of a scalar: bool is "uchar", f16 "ushort"
std::string_view value_type(DType dtype);  // of a variable: 16-bit floats are "float", bool is "int"
std::string c_number(double value, DType dtype);

}  // namespace oclc

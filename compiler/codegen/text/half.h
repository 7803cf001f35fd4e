// Text that reads and writes 16-bit floats, which kernels compute with in single precision: every device holds them, few
// compute with them.
#pragma once
#include <string>

#include "compiler/codegen/text/scope.h"

namespace oclc {

inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// The float, or the vector of the mode's width, at element `at` of operand `name`.
std::string half_load(DType dtype, const std::string& name, const std::string& at, const EmitMode& mode);
// `value` rounded, as float again.
std::string half_round(DType dtype, const std::string& value);
// Statement that rounds `value` to the nearest, ties to even, and stores it there.
std::string half_store(DType dtype, const std::string& value, const std::string& name, const std::string& at,
                       const EmitMode& mode);

}  // namespace oclc

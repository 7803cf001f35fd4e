// Text that reads the bits of one element type as another of the same width.
#pragma once
#include <string>

#include "compiler/ir/tensor.h"

namespace oclc {

// `value` as kernels compute with an element of type `from`: 16-bit floats as float, truth values as int.
std::string bits_text(DType from, DType to, const std::string& value);

}  // namespace oclc

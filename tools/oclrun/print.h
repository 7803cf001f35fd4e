// Outputs as text.
#pragma once
#include <cstdio>
#include <string>

#include "tools/io/tensor.h"

namespace oclc::oclrun {

// "y float32 [1, 1000]" and its first elements, or with `top` > 0 the largest `top` values of each row (last dimension) with
// their indices. At most 16 rows.
std::string tensor_text(const io::Tensor& tensor, int top);

// Names in it may hold anything: what could steer a terminal is escaped.
void print(std::FILE* to, const std::string& text);

}  // namespace oclc::oclrun

#pragma once
#include <string>

namespace oclc::runtime {

// Vector and matrix instruction sets of this machine that kernels may use, separated by spaces: "avx2 fma avx512f amx_tile
// ...". What both the processor and the operating system enable; "" on architectures other than x86.
std::string cpu_features();

// Whether tiles of bfloat16 and of bytes can be multiplied, once the process has asked for them.
bool has_amx();

}  // namespace oclc::runtime

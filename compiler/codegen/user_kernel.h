// Kernels around a user's body (Kernel::code): a function for each operand that it reads or writes an element of, the body for
// one point of the index space, and loops or work-items over the points.
#pragma once
#include "compiler/codegen/codegen.h"

namespace oclc {

// The calls of the body are macros, which end with it.
GeneratedKernel generate_user_kernel(Kernel kernel, const Target& target);

}  // namespace oclc

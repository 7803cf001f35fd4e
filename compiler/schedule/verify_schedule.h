// Whether a schedule is well-formed.
#pragma once
#include <string>

#include "compiler/kernels/kernel.h"

namespace oclc {

// What is wrong first, with its kernel or step; empty if nothing is: indices within their lists, nodes behind their arguments,
// nothing written that the caller or the compiler gives, steps that hold what their form says, symbols that a loop, a reading
// or the module defines, memory that is written before it is read.
std::string verify(const Schedule& schedule);

}  // namespace oclc

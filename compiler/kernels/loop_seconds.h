// What a kernel of generated loops takes by estimate.
#pragma once
#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// Of all compute units, without the launch: arithmetic at the rate that loops reach, or memory. Unbound symbols count as in
// ir/typical.h.
double loop_seconds(const Kernel& kernel, const Target& target);

}  // namespace oclc

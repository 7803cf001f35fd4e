#include "compiler/kernels/loop_seconds.h"

#include <algorithm>

#include "compiler/ir/typical.h"
#include "compiler/targets/costs.h"

namespace oclc {

double loop_seconds(const Kernel& kernel, const Target& target) {
  return std::max(typical(kernel.flops) / (target.flops * cost::kLoopShare), typical(kernel.bytes) / target.bytes_per_second);
}

}  // namespace oclc

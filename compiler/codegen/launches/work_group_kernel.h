// One kernel for a chain: each group runs all kernels of it, one after another, for one value of its counter.
#pragma once
#include "compiler/codegen/launches/loop_kernel.h"

namespace oclc {

// A group's work-items share each kernel and wait for one another after it; what a kernel hands on lies in memory.
SeveralKernels generate_work_group(const std::string& name, const Step& step, const Schedule& schedule, const Target& target);

}  // namespace oclc

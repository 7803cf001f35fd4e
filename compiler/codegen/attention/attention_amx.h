// Attention on the tile units of x86 processors: the template attention_amx.cl.
#pragma once
#include "compiler/codegen/launches/loop_kernel.h"

namespace oclc {

// The kernel has groups of one work-item, and a tile function for megakernels.
SeveralKernels generate_attention_amx(const std::string& name, const Step& step, const Schedule& schedule,
                                      const Target& target);

}  // namespace oclc

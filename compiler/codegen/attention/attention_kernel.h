// One kernel for attention: scores, softmax and weighted sum by the templates attention_*.cl.
#pragma once
#include "compiler/codegen/launches/loop_kernel.h"

namespace oclc {

// On a GPU text for a matrix unit stands under `#if OCLC_NV_SM >= 80`; the other text has the same work-groups.
SeveralKernels generate_attention(const std::string& name, const Step& step, const Schedule& schedule, const Target& target);

}  // namespace oclc

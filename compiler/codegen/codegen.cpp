#include "compiler/codegen/codegen.h"

#include "compiler/codegen/contraction/emit.h"
#include "compiler/codegen/contraction/gpu/contraction_row_gpu.h"
#include "compiler/codegen/loops/group_reduction.h"
#include "compiler/codegen/loops/loop_nest.h"
#include "compiler/codegen/loops/window_planes.h"
#include "compiler/codegen/user_kernel.h"
#include "compiler/support/error.h"

namespace oclc {

GeneratedKernel generate(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target) {
  if (kernel.contraction) {
    OCLC_CHECK(kernel.contraction->choice, "contractions are chosen before code is generated");
    const Choice& choice = *kernel.contraction->choice;
    if (choice.strategy != StrategyId::loops) return emit_contraction(kernel, choice, buffers, target);
  }
  if (kernel.code) return generate_user_kernel(kernel, target);
  if (auto planes = generate_window_planes(kernel, target)) return std::move(*planes);
  if (auto row = generate_row_gpu(kernel, buffers, target)) return std::move(*row);
  if (auto shared = generate_group_reduction(kernel, target)) return std::move(*shared);
  return generate_loops(kernel, target);
}

}  // namespace oclc

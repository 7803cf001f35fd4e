#include "compiler/codegen/codegen.h"

#include "compiler/codegen/contraction/cpu/contraction.h"
#include "compiler/codegen/contraction/gpu/contraction_gpu.h"
#include "compiler/codegen/contraction/gpu/contraction_row_gpu.h"
#include "compiler/codegen/contraction/gpu/packed_right.h"
#include "compiler/codegen/loops/group_reduction.h"
#include "compiler/codegen/loops/loop_nest.h"
#include "compiler/codegen/loops/window_planes.h"

namespace oclc {

GeneratedKernel generate(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target) {
  if (kernel.contraction) {
    if (auto packing = generate_packing(kernel, target)) return std::move(*packing);
    if (auto contraction = generate_contraction(kernel, buffers, target)) return std::move(*contraction);
    if (auto contraction = generate_gpu_contraction(kernel, buffers, target)) return std::move(*contraction);
  }
  if (auto planes = generate_window_planes(kernel, target)) return std::move(*planes);
  if (auto row = generate_row_gpu(kernel, buffers, target)) return std::move(*row);
  if (auto shared = generate_group_reduction(kernel, target)) return std::move(*shared);
  return generate_loops(kernel, target);
}

}  // namespace oclc

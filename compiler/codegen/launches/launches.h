// The code of all launches of a schedule: the result of the stage `codegen`.
#pragma once
#include <variant>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/launches/horizontal_fusion.h"
#include "compiler/codegen/launches/loop_kernel.h"
#include "compiler/codegen/launches/megakernel.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// Kernels are generated under this name, so that those with the same text can be told.
inline constexpr const char* kPlaceholder = "KERNEL_NAME";

struct GeneratedLaunch {
  // Of one kernel of the schedule; of several that pass each buffer as an argument, or their memory objects and a table; of
  // neighbours; of a megakernel step.
  std::variant<GeneratedKernel, SeveralKernels, HorizontallyFused, MegakernelCode> code;
  std::vector<bool> shared = {};  // by argument: passed without a memory object, see merge_arguments.h
  int prefetched = -1;            // the launch, by its place among all, whose first packed buffer this one prefetches; -1: none

  // With the name that it is to have; its text is that of a kernel called kPlaceholder.
  GeneratedKernel& kernel();
  const GeneratedKernel& kernel() const;
};

// Of every launch, in the order of the entries' steps. `merge_arguments`: buffers in one memory object are one argument and
// offsets, where that pays. CompileError for types that the target does not compute with, or that have no kernel code.
std::vector<GeneratedLaunch> generate_launches(const Schedule& schedule, const Target& target, bool merge_arguments);

// Whether a kernel computes with doubles.
bool uses_doubles(const Kernel& kernel);

}  // namespace oclc

// Kernels of a GPU that do not need each other become one launch, whose groups belong to one or the other: weights are packed
// while statistics of a few channels are added up, which leave most of the device idle, and the gradients of many small
// parameters are put in their places at once.
#pragma once
#include <span>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/schedule/pass.h"

namespace oclc {

// Marks steps with KernelStep::beside, and brings them forward to the step whose launch they share. Outside of loops, for
// kernels with groups of one size and a known number of them that take no more than a few launches' time, and where the most
// memory that is alive at once grows by a hundredth at most. Sums that a group's work-items share keep launches of their own:
// PoCL miscompiles their barriers, which stand in loops, behind a condition. Other tile functions with barriers make the same
// trips through their loops in all work-items, for the same reason.
void horizontal_fusion(Schedule& schedule, const ScheduleContext& context);

// One kernel for steps of which all but the first are `beside`. Its arguments name operands by their position in `buffers`.
struct HorizontallyFused {
  GeneratedKernel kernel;
  struct Argument {
    int buffer = -1;  // of the schedule
    bool written = false;
  };
  std::vector<Argument> buffers;
};
HorizontallyFused generate_horizontal_fusion(const std::string& name, std::span<const Step> steps, const Schedule& schedule,
                                             const Target& target);

}  // namespace oclc

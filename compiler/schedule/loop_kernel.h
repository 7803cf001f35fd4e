// Small loops as one kernel: the steps of a trip run one after another inside of it, so that a trip costs its arithmetic
// instead of a launch a step. Without it a recurrent layer or a training loop of some hundred parameters spends its time on
// launches.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Makes a loop-kernel step of every loop whose trips one work-item (CPU) or one work-group (GPU) does faster than launches
// would, together with the small kernels that stand beside it.
void loop_kernel(Schedule& schedule, const ScheduleContext& context);

// Buffers of kind arena and constant size that nothing but `step` uses.
std::vector<int> own_buffers(const Schedule& schedule, const Step& step);

}  // namespace oclc

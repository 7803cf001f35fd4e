// The passes of the stage `schedule`, in order. The list stands above code generation, which some of them still ask for tiles.
#pragma once
#include <span>

#include "compiler/schedule/pass.h"

namespace oclc {

std::span<const SchedulePass> schedule_passes();

}  // namespace oclc

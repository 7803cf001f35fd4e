// Loops that need nothing of each other, such as the two directions of a recurrent layer: a core does one from beginning to
// end. Trips of a small body are short, and where cores share its tiles each trip waits twice and reads what others wrote.
#pragma once
#include "compiler/schedule/pass.h"

namespace oclc {

// Puts as many such loops of equal work as a CPU has cores into one step, `apart`, at the place of the last, where all steps
// between can do without the others' results.
void parallel_loops(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

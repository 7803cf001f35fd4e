#include <algorithm>

#include "compiler/schedule/pass.h"

namespace oclc {

bool ScheduleContext::runs(std::string_view name) const {
  return std::find(disabled.begin(), disabled.end(), name) == disabled.end();
}

void run_schedule_passes(Schedule& schedule, std::span<const SchedulePass> passes, const ScheduleContext& context) {
  using Needs = SchedulePass::Needs;
  const bool fuses = context.runs("fuse"), shares_launches = fuses && context.runs("resident");
  for (const SchedulePass& pass : passes) {
    const bool allowed = pass.needs == Needs::nothing || (pass.needs == Needs::fuse ? fuses : shares_launches);
    if (!allowed || !context.runs(pass.name) || !pass.applies(context)) continue;
    pass.function(schedule, context);
    if (context.after) context.after(pass.name, schedule);
  }
}

}  // namespace oclc

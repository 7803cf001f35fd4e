#include <fmt/format.h>

#include <algorithm>

#include "compiler/schedule/pass.h"
#include "compiler/schedule/verify_schedule.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

void check(const Schedule& schedule, const std::string& when) {
  const std::string problem = verify(schedule);
  OCLC_CHECK(problem.empty(), fmt::format("{}: {}", when, problem));
}

}  // namespace

bool ScheduleContext::runs(std::string_view name) const {
  return std::find(disabled.begin(), disabled.end(), name) == disabled.end();
}

void run_schedule_passes(Schedule& schedule, std::span<const SchedulePass> passes, const ScheduleContext& context) {
  using Needs = SchedulePass::Needs;
  const bool fuses = context.runs("fuse"), shares_launches = fuses && context.runs("megakernel");
  if (context.verify_each) check(schedule, "before the schedule's passes");
  for (const SchedulePass& pass : passes) {
    const bool allowed = pass.needs == Needs::nothing || (pass.needs == Needs::fuse ? fuses : shares_launches);
    if (!allowed || !context.runs(pass.name) || !pass.applies(context)) continue;
    pass.function(schedule, context);
    if (context.verify_each) check(schedule, fmt::format("after schedule pass {}", pass.name));
  }
}

}  // namespace oclc

#include "compiler/targets/costs.h"

#include "compiler/targets/target.h"

namespace oclc {

std::span<const CostRow> cost_rows() {
  static constexpr CostRow kRows[] = {
#define OCLC_COST(name, family, value, unit, machine, date, command) \
  {#name, family, static_cast<double>(value), unit, machine, date, command},
#include "compiler/targets/costs.def"
#undef OCLC_COST
  };
  return kRows;
}

FusionCosts fusion_costs(const Target& target) {
  return {.launch_bytes = target.items_are_cores() ? cost::kCoreFusionLaunchBytes : cost::kGroupFusionLaunchBytes};
}

double loop_step_seconds(const Target& target) {
  return target.items_are_cores() ? cost::kCoreStepSeconds : cost::kGroupStepSeconds;
}

GroupCosts group_costs(const Target& target) {
  if (target.items_are_cores()) return {cost::kFewestMembersOnCores, cost::kPartOfLaunchSeconds, 0, 0};
  return {2, target.launch_seconds, cost::kMemoryObjectSeconds, cost::kMemberSearchSeconds};
}

}  // namespace oclc

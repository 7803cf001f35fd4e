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

}  // namespace oclc

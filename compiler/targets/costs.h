// What things cost: the rows of costs.def and of the lists that it includes, as constants for estimates, and as a table for
// reports and calibration.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace oclc {

struct Target;

namespace cost {
#define OCLC_COST(name, family, value, unit, machine, date, command) inline constexpr auto name = value;
#include "compiler/targets/costs.def"
#undef OCLC_COST
}  // namespace cost

struct CostRow {
  std::string_view name, family;
  double value;
  std::string_view unit, machine, date, command;
};

std::span<const CostRow> cost_rows();

// What fusion weighs: bytes that memory moves in the time of a launch, and of a floating-point operation.
struct FusionCosts {
  double launch_bytes = cost::kCoreFusionLaunchBytes, bytes_per_flop = cost::kFusionBytesPerFlop;
};

FusionCosts fusion_costs(const Target& target);

// A step of a loop that is one kernel, beside its work.
double loop_step_seconds(const Target& target);

// What groups of equal kernels weigh: members from which on one is worth it, what each saves that is no launch, or part of one,
// of its own, what each memory object among its arguments takes, and what it takes to find a member.
struct GroupCosts {
  double fewest_members, launch_seconds, object_seconds, search_seconds;
};

GroupCosts group_costs(const Target& target);

}  // namespace oclc

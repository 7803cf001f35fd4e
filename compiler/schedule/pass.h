// Schedule passes: rewrites of a schedule that keep what it computes within the contract of precision. One free function in one
// file each; compiler/schedule_passes.cpp lists them in order, with the reason for each.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// What a pass is told beside the schedule.
struct ScheduleContext {
  Target target;                           // under the contract of precision
  std::vector<std::string> disabled = {};  // names of passes that are switched off, and "fuse"
  // Rounding errors that passes may add, relative to a network's largest result; see contract_error().
  double error_budget = 0;
  bool rounds_weights = false;  // weights may be stored in fewer bits
#ifdef NDEBUG
  bool verify_each = false;  // verify the schedule before the first pass and after each
#else
  bool verify_each = true;
#endif

  bool runs(std::string_view name) const;
};

struct SchedulePass {
  // Without `fuse` each operator is one kernel, and each kernel a launch; without `megakernel` one launch never does several
  // kernels by claiming their tiles.
  enum class Needs { nothing, fuse, megakernel };

  std::string_view name;  // for --disable: of the function and its file
  void (*function)(Schedule&, const ScheduleContext&);
  Needs needs;
  bool (*applies)(const ScheduleContext&);  // to the target, under the contract of precision
  std::string_view after;                   // the pass that has to stand before it; empty: any
  std::string_view reason;                  // why it stands there
};

// Runs those of `passes` that are not disabled and apply, in order. InternalError naming the pass behind which the schedule is
// no longer well-formed, where `verify_each` asks for it.
void run_schedule_passes(Schedule& schedule, std::span<const SchedulePass> passes, const ScheduleContext& context);

}  // namespace oclc

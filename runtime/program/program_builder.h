// Builds the programs of a plan for a device, or takes them from the cache.
#pragma once
#include <cstdint>
#include <vector>

#include "plan_generated.h"
#include "runtime/device/context.h"

namespace oclc::runtime {

struct BuiltPrograms {
  std::vector<ClProgram> units;        // what was built: a program or several as one
  std::vector<std::uint32_t> unit_of;  // of each program of the plan
  std::uint32_t built = 0;             // by the driver's compiler
  std::uint32_t cached = 0;
};

// Several threads where the driver can use them; they have ended on return. A build that fails is tried once more (PoCL's cache
// races between processes), then throws OCLC_E_BUILD with the first lines of the log.
BuiltPrograms build_programs(Context& context, const oclc::plan::Plan& plan);

}  // namespace oclc::runtime

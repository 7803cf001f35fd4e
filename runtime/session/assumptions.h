// What the compiler took for equal, compared with the dimensions of a run.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "plan_generated.h"

namespace oclc::runtime {

// Throws OCLC_E_BINDING naming the node, both expressions and their values where two dimensions differ that must be equal.
// Those of symbols that are not `known` are of other entry points.
void check_assumptions(const oclc::plan::Plan& plan, std::span<const std::int64_t> symbols, const std::vector<bool>& known);

}  // namespace oclc::runtime

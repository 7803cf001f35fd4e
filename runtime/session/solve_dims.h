// Symbols that stand in no dimension by themselves, from dimensions that are expressions of them.
#pragma once
#include <cstdint>
#include <span>

#include "plan_generated.h"

namespace oclc::runtime {

// Whether dimension `e`, which is `size`, gives a value to a symbol: one whose value is negative so far and that it uses with a
// constant factor, all others being known. Then `symbol` and `value` are set. What cannot be divided is left to the comparison
// of whole shapes.
bool solve_dim(const oclc::plan::Expr* e, std::int64_t size, std::span<const std::int64_t> values, int& symbol,
               std::int64_t& value);

}  // namespace oclc::runtime

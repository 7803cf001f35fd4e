// The row of a contraction that was timed instead of estimated.
#pragma once
#include <string>
#include <vector>

#include "compiler/contraction/strategy.h"

namespace oclc {

// Under which a contraction's row is found: "row_fp32", the contract's name; groups, rows, columns, terms, taps, whether the
// right operand is constant, and cores. Empty where sizes are open, or a pass asked for the row.
std::string row_key(const Problem& problem, const Target& target);

// Of ranked candidates the one that was timed for `key`: a number of the row, and which of its tiles; 0 are the row's own. The
// best by estimate where there is none, or none that is legal here. Asks for it with all others.
Choice tuned_row(const std::string& key, const std::vector<Candidate>& ranked, const Target& target);

}  // namespace oclc

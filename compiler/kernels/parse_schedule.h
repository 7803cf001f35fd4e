// Reads the text form of a schedule, Schedule::text(): what --stop-after=kernels and --stop-after=schedule print.
#pragma once
#include <string_view>

#include "compiler/ir/parse.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// The schedule whose text it is. What the text leaves out is as in a schedule that was never written: values of constants of
// more than 16 elements are zeros of the stated type, states have no initial values, contractions no choice, which
// choose_contractions() makes. Beyond what is printed, a constant may be `random seed`.
//
// CompileError of stage "parse" that names the line, what was wanted and what was found, if the text is malformed or names an
// operator, operand, node, axis, symbol or kernel that is not defined before. Whether the schedule is well-formed tells
// verify().
Schedule parse_schedule(std::string_view text, const OpLookup& find_op);

}  // namespace oclc

// Rules for texts and for the operators that the host computes.
#pragma once
#include <string>

#include "plan_generated.h"

namespace oclc::package {

// Error (invalid) unless Plan.strings are different texts without NUL, the first empty, where any buffer holds texts; and
// unless state, its variables and arguments of GEMMs hold numbers.
void verify_strings(const plan::Plan& plan);

// Error (invalid), beginning with `where`, unless the operator is known, its settings are legal and its operands are in number
// and element type what it takes. Buffers are looked up only where their index is one.
void verify_host_settings(const std::string& where, const plan::Plan& plan, const plan::Host& host);

}  // namespace oclc::package

// Where the variables of a plan lie.
#pragma once
#include "plan_generated.h"

namespace oclc::package {

// Each variable lies within its state buffer, has its element type, and overlaps no other. Throws Error{invalid}. The indices
// and expressions of the variables have been checked; the sizes of state buffers are constant.
void verify_variable_places(const oclc::plan::Plan& plan);

}  // namespace oclc::package

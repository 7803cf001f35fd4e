// From the text of a file to its operators.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "frontends/op/custom_op.h"

namespace oclc::custom {

// Reads every head. What names mean is not looked at: see check_op.
std::vector<CustomOp> read_heads(std::string_view text, const std::string& file);

// Every name that the operator uses is known and used as what it is; every output is given. CompileError if not.
void check_op(const CustomOp& op);

// Whether a formula may call the function, and with how many arguments; 0: there is none of that name.
int arity_of(std::string_view function);
std::vector<std::string> function_names();

}  // namespace oclc::custom

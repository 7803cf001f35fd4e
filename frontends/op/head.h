// From the text of a file to its operators.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "frontends/op/custom_op.h"

namespace oclc::custom {

// The operator of one head, TOML that begins at that place. What names mean is not looked at: see check_op.
CustomOp read_head(const std::string& file, std::string_view text, const Place& begin);
// CompileError at the first character of it that is not ASCII and stands outside of texts and comments: what the reader of TOML
// does with some of them is undefined.
void refuse_odd_characters(const std::string& file, std::string_view head, const Place& begin);
// Every head of a file, with its code.
std::vector<CustomOp> read_heads(std::string_view text, const std::string& file);

// Of operators in OpenCL C: the host's formula, with the operator's operands; gradients by input; and what is wrong with the
// code.
std::shared_ptr<const CustomOp> reference_of(const CustomOp& op, std::vector<Line> lines);
void set_gradient(CustomOp& op, const std::vector<std::pair<std::string, Formula>>& formulas);
void check_code(const CustomOp& op);

// Every name that the operator uses is known and used as what it is; every output is given. CompileError if not.
void check_op(const CustomOp& op);

// Whether a formula may call the function, and with how many arguments; 0: there is none of that name.
int arity_of(std::string_view function);
std::vector<std::string> function_names();

}  // namespace oclc::custom

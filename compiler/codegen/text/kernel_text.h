// What every generated kernel has around its body: the comment before it, and its parameters.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/codegen.h"

namespace oclc {

std::string comment_safe(std::string_view name);  // at most 80 characters of a name that may hold anything
std::string kernel_head(const Kernel& kernel, const GeneratedKernel& generated);  // the comment before the code
std::string parameter_list(const Kernel& kernel, bool with_offsets);              // "__global const float* x, ..."
std::string argument_list(const Kernel& kernel);                                  // "x + x_at, ..., dim_N"
// `text` with `name` wherever `placeholder` stands.
std::string with_name(std::string text, std::string_view placeholder, std::string_view name);
std::vector<KernelArgument> arguments_of(const Kernel& kernel);  // those of parameter_list

}  // namespace oclc

// Names of the model as parts of names in generated code.
#pragma once
#include <string>
#include <string_view>

namespace oclc {

// The letters and digits of `name`, which may hold anything, with one underscore for whatever stands between them. May be
// empty or begin with a digit: a prefix makes it an identifier, and keeps it apart from the words of OpenCL C.
std::string identifier_part(std::string_view name);

}  // namespace oclc

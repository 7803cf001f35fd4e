// Rules for the text of programs: what a driver compiles reads no file of the machine and ends no process.
#pragma once
#include <string>
#include <string_view>

namespace oclc::package {

// What is wrong with a program's source, or empty. Directives that read files are refused, and pragmas but those of OpenCL and
// for loops: compilers have some that end the process. Takes time in proportion to the text, most of it in memchr.
std::string problem_of_source(std::string_view source);

// The same of build options: those that define macros or begin with -cl- are allowed.
std::string problem_of_options(std::string_view options);

}  // namespace oclc::package

// docs/operators.md: what is read, for which types, and what becomes of it, found by reading and compiling random uses.
#pragma once
#include <string>

namespace oclc::fuzz {

std::string support_table();

}  // namespace oclc::fuzz

// oclrun --help, which is also the table that its man page and completion are made from.
#pragma once
#include <string_view>

namespace oclc::oclrun {

extern const std::string_view kHelp;

}  // namespace oclc::oclrun

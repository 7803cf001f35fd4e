// Spellings of passes before they had the field's names; --disable takes them for one release.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace oclc {

// The name that a pass has now, of its name or of one that it had.
std::string_view current_pass_name(std::string_view name);
std::vector<std::string> current_pass_names(const std::vector<std::string>& names);

}  // namespace oclc

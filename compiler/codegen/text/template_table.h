// The templates as text, embedded at build time from templates/.
#pragma once
#include <string_view>
#include <vector>

namespace oclc {

struct TemplateText {
  std::string_view name;  // of the file, without .cl and "functions/"; of a piece "pieces/" and its name
  std::string_view text;
};

// All templates, sorted by name.
const std::vector<TemplateText>& template_texts();

}  // namespace oclc

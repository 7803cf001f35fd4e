// The templates as text, embedded at build time from templates/*.cl.
#pragma once
#include <string_view>
#include <vector>

namespace oclc {

struct TemplateText {
  std::string_view name;  // file name without .cl
  std::string_view text;
};

// All templates, sorted by name.
const std::vector<TemplateText>& template_texts();

}  // namespace oclc

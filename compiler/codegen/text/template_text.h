// Expansion of templates/*.cl: parameters become literals, holes become generated lines.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace oclc {

struct TemplateValues {
  std::map<std::string, std::string> parameters;  // overrides of #define'd names; other names keep the template's default
  std::map<std::string, std::string> holes;       // lines that replace a hole's default; a hole that is not named keeps it
};

// The body of the function NAME_tile of template NAME, two spaces of indentation, all macros expanded, constant expressions in
// macros folded. InternalError if the template or a named hole does not exist.
std::string expand_tile_body(std::string_view name, const TemplateValues& values);
// What an object-like macro of the template comes to, e.g. the size of its local array.
std::string expand_macro(std::string_view name, std::string_view macro, const TemplateValues& values);

}  // namespace oclc

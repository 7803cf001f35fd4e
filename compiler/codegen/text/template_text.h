// Expansion of templates/*.cl: parameters become literals, holes become generated lines.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/text/template_table.h"

namespace oclc {

struct TemplateValues {
  std::map<std::string, std::string> parameters;  // of those that the template declares; others keep their defaults
  std::map<std::string, std::string> holes;       // lines that replace a hole's default; a hole that is not named keeps it
};

// The body of the function NAME_tile of template NAME, two spaces of indentation, all macros expanded, what is known folded.
// InternalError if the template does not exist, has no such parameter or hole, or a value is not legal.
std::string expand_tile_body(std::string_view name, const TemplateValues& values);
// The same of a text that is not in the table.
std::string expand_tile_text(const TemplateText& row, const TemplateValues& values);
// What template `name` takes of `values`, which are those of a family of templates that stand in for one another. InternalError
// where none of the family takes a parameter or a hole.
TemplateValues values_of(std::string_view name, const TemplateValues& values, const std::vector<std::string_view>& family);
// What an object-like macro of the template comes to, e.g. the size of its local array.
std::string expand_macro(std::string_view name, std::string_view macro, const TemplateValues& values);

}  // namespace oclc

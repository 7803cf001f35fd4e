// A template's text with the pieces that it includes, the parameters that it declares and the holes that it names.
//
//   //@include PIECE                      the lines of templates/pieces/PIECE.cl, as far to the right as this one
//   //@include PIECE X=TEXT Y="TEXT"      the same with TEXT for each $X: what is done to two operands, or to rows and columns
//   //@with X Y  text                     a piece's first line: the texts that it is included with, those and no others
//   //@param NAME DEFAULT {LEGAL}  text   a macro that TemplateValues may set; or several, NAME DEFAULT {LEGAL} NAME DEFAULT
//   {LEGAL}  text.
//                                         The first declaration of a name holds: a template declares before it includes what it
//                                         narrows.
//   //@only MACRO                         the text is for compilers that have the macro
//   //@kernel SIZE, FLOATS, ALIGNMENT      where the template compiles alone, groups of SIZE work-items do a tile each, with
//   FLOATS of
//                                         local memory at a multiple of ALIGNMENT bytes; without the last two: as it comes, or
//                                         none
//   //@hole NAME ... //@end               lines that a TemplateValues may replace
//   //@lines NAME                         the same of no lines
//
// LEGAL: alternatives with commas between them: integers; ranges 1..8, 1.., 16..256 step 16, whose bounds may be constant
// expressions of other parameters; words; `name`, an identifier that the hole SIZES declares; `expr`, any expression.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/text/template_table.h"

namespace oclc {

struct TemplateParameter {
  std::string name, arguments;  // of a function-like macro "(v)", else empty
  std::string value;            // the default
  std::vector<std::string> legal;
};

struct TemplateSource {
  std::string name, text;
  std::vector<TemplateParameter> parameters;
  std::set<std::string, std::less<>> holes;

  const TemplateParameter* parameter(std::string_view wanted) const;
};

// Read once in a process, and kept until its end; from any thread. InternalError where there is no such template, or it
// includes what is not there or itself.
const TemplateSource& read_template(std::string_view name);
// The same of a text that is not in the table.
TemplateSource read_template_text(const TemplateText& row);

// The parameters that a line declares.
std::vector<TemplateParameter> declared_parameters(std::string_view line);

// The template as OpenCL C that compiles alone, parameters with their defaults unless a macro is there before.
std::string standalone_template(std::string_view name);

}  // namespace oclc

// OpenCL C beside the heads of a file: functions, constants and macros, and bodies OP(name) { .. }.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/user_op.h"
#include "frontends/op/custom_op.h"

namespace oclc::custom {

// A token of OpenCL C; comments are none.
struct CodeToken {
  enum class Kind { word, number, sign, text, directive };  // a directive is a line, with those that continue it
  Kind kind = Kind::sign;
  std::string_view text;
  std::size_t at = 0;  // in the file's text
};

std::vector<CodeToken> code_tokens(std::string_view text, std::size_t begin, std::size_t end);

struct Parameter {
  std::string type, name;
};

struct Function {
  std::string name, result;
  std::vector<Parameter> parameters;
  std::size_t place = 0, begin = 0, end = 0;  // in the file's text: the name, and between the braces
};

struct Body {
  std::size_t place = 0, begin = 0, end = 0;
};

// LOAD, STORE or POINTER in a body.
struct Call {
  Place place;
  std::string text;
};

struct Code {
  std::string file, source;  // with spaces in place of heads and comments
  std::string prefix;        // of all names that it declares, once it stands before kernels
  std::string text;          // what stands there; empty: nothing
  std::vector<std::string> declared;
  std::vector<Function> functions;
  std::map<std::string, Body, std::less<>> bodies;

  const Function* function(std::string_view name) const;
  Place place(std::size_t at) const;
  // Part of the source, with declared names as they are before kernels, and words by `words` where that has them.
  std::string renamed(std::size_t begin, std::size_t end,
                      const std::map<std::string, std::string, std::less<>>& words = {}) const;
};

// CompileError for what may not stand in a file: other directives than #define, variables, kernels, get_global_id.
Code read_code(std::string source, const std::string& file);

// The function as OpenCL C for elements a, b, c, .. that is valid for vectors as well: its expression, or a call of it. `code`
// is what the call needs beside the code of the file.
struct ScalarText {
  std::string text, code;
};
ScalarText scalar_text(const CustomOp& op, const Function& function,
                       const std::map<std::string, std::string, std::less<>>& attributes);

// What the compiler keeps of a body, and its calls.
UserBody body_of(const CustomOp& op, Build form, std::vector<Call>* calls = nullptr);

// The body with its calls as macros, see UserBody; checks names and numbers of positions. `calls` become its calls in order.
std::string body_text(const CustomOp& op, UserBody& body, std::vector<Call>& calls);

}  // namespace oclc::custom

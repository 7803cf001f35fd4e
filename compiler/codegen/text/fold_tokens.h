// Text of OpenCL C as tokens, and what is constant in its expressions folded.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oclc {

struct Token {
  enum class Kind { word, number, mark, note };  // note: a comment, or a line of the preprocessor
  std::string space, text;                       // spaces and line ends before it
  Kind kind = Kind::mark;
  bool is_gone = false;

  bool is(std::string_view wanted) const { return text == wanted; }
  bool begins_line() const { return space.find('\n') != std::string::npos; }
};

using Tokens = std::vector<Token>;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list);

Tokens tokens_of(const std::string& text);
// The position of the bracket that closes the one at `open`; the number of tokens if none does.
std::size_t closing(const Tokens& tokens, std::size_t open);
// The value if the tokens are one number of int, or one with a sign.
std::optional<std::int64_t> number_of(const Tokens& tokens);

// Operations on numbers of type int become numbers, `1 ? a : b`, `x * 1`, `x + 0`, `1 && x` and the like what they come to;
// each expression of a statement by itself. What is no expression stays.
void fold_expressions(Tokens& tokens);

}  // namespace oclc

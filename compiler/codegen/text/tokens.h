// Text of OpenCL C as tokens.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oclc {

inline bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

struct Token {
  enum class Kind { word, number, mark, note };  // note: a comment, or a line of the preprocessor
  std::string space, text;                       // spaces and line ends before it
  Kind kind = Kind::mark;
  bool is_gone = false;

  bool is(std::string_view wanted) const { return text == wanted; }
  bool opens() const { return text.size() == 1 && (text[0] == '(' || text[0] == '[' || text[0] == '{'); }
  bool closes() const { return text.size() == 1 && (text[0] == ')' || text[0] == ']' || text[0] == '}'); }
  bool begins_line() const { return space.find('\n') != std::string::npos; }
};

using Tokens = std::vector<Token>;

inline bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

Tokens tokens_of(const std::string& text);
// The position of the bracket that closes the one at `open`; the number of tokens if none does.
std::size_t closing(const Tokens& tokens, std::size_t open);
// The value if the tokens are one number of int, or one with a sign.
std::optional<std::int64_t> number_of(const Tokens& tokens);

}  // namespace oclc

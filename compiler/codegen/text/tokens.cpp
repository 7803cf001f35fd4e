#include "compiler/codegen/text/tokens.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace oclc {
namespace {

constexpr std::string_view kMarks[] = {"<<=", ">>=", "++", "--", "<<", ">>", "->", "&&", "||", "==", "!=",
                                       "<=",  ">=",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};

constexpr std::string_view kSecondOfMark = "<>=+-&|";  // of those of more than one character

}  // namespace

Tokens tokens_of(const std::string& text) {
  Tokens tokens;
  bool line_begins = true;
  for (std::size_t at = 0; at < text.size();) {
    Token token;
    for (; at < text.size() && std::isspace(static_cast<unsigned char>(text[at])); ++at) {
      token.space += text[at];
      line_begins |= text[at] == '\n';
    }
    if (at == text.size()) break;
    std::size_t end = at + 1;
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with("//") || (rest.starts_with("#") && line_begins)) {
      token.kind = Token::Kind::note;
      end = std::min(text.find('\n', at), text.size());
    } else if (rest.starts_with("\"") || rest.starts_with("'")) {
      token.kind = Token::Kind::number;
      while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
      ++end;
    } else if (std::isdigit(static_cast<unsigned char>(text[at])) ||
               (text[at] == '.' && rest.size() > 1 && std::isdigit(static_cast<unsigned char>(rest[1])))) {
      token.kind = Token::Kind::number;
      const bool hexadecimal = rest.starts_with("0x");
      while (end < text.size() &&
             (is_word_char(text[end]) || text[end] == '.' ||
              ((text[end] == '-' || text[end] == '+') && !hexadecimal && (text[end - 1] == 'e' || text[end - 1] == 'E'))))
        ++end;
    } else if (is_word_char(text[at])) {
      token.kind = Token::Kind::word;
      while (end < text.size() && is_word_char(text[end])) ++end;
    } else if (rest.size() > 1 && kSecondOfMark.find(rest[1]) != std::string_view::npos) {
      for (const std::string_view mark : kMarks) {
        if (!rest.starts_with(mark)) continue;
        end = at + mark.size();
        break;
      }
    }
    token.text = text.substr(at, end - at);
    tokens.push_back(std::move(token));
    line_begins = false;
    at = end;
  }
  return tokens;
}

std::size_t closing(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].is_gone) continue;
    if (tokens[i].opens()) ++depth;
    if (tokens[i].closes() && --depth == 0) return i;
  }
  return tokens.size();
}

std::optional<std::int64_t> number_of(const Tokens& tokens) {
  const bool negative = tokens.size() == 2 && tokens[0].is("-");
  if (tokens.size() != (negative ? 2U : 1U)) return std::nullopt;
  const std::string& digits = tokens.back().text;
  const bool is_number = tokens.back().kind == Token::Kind::number && digits.size() <= 9 &&
                         std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
                         (digits.size() == 1 || digits[0] != '0');
  if (!is_number) return std::nullopt;
  return negative ? -std::stoll(digits) : std::stoll(digits);
}

}  // namespace oclc

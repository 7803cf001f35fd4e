// The tokens of formulas.
#pragma once
#include <string>
#include <vector>

#include "frontends/op/formula.h"

namespace oclc::custom {

enum class TokenKind { number, name, text, sign, line_end, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // a sign is one of kSigns; a text is without its quotes
  Place place;
  double number = 0;
  bool whole = false;
};

// All tokens, the last of kind `end`. Line ends inside of brackets, and lines without tokens, are passed over; `#` begins a
// comment.
std::vector<Token> tokens_of(const Excerpt& text);

}  // namespace oclc::custom

#include "frontends/op/tokens.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

namespace oclc::custom {
namespace {

constexpr std::size_t kMostTokens = 20'000;
constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: what a double counts
// Longer ones first.
constexpr std::string_view kSigns[] = {"...", "+=", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "<", ">",
                                       "=",   "?",  ":",  ",",  "(",  ")",  "[",  "]",  "!", "{", "}", ".", ";", "&", "|"};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Tokens {
 public:
  explicit Tokens(const Excerpt& source) : source_(source), place_(source.begin) {}

  std::vector<Token> all() {
    while (at_ < source_.text.size()) {
      next();
      if (list_.size() > kMostTokens)
        fail_at(source_.file, place_, fmt::format("at most {} words and signs in a formula", kMostTokens), "more");
    }
    add(TokenKind::end, 0);
    return std::move(list_);
  }

 private:
  char look(std::size_t ahead = 0) const { return at_ + ahead < source_.text.size() ? source_.text[at_ + ahead] : '\0'; }

  void pass(std::size_t count) {
    for (; count > 0; --count, ++at_) {
      if (!source_.exact) continue;
      if (source_.text[at_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else {
        ++place_.column;
      }
    }
  }

  Token& add(TokenKind kind, std::size_t length) {
    Token& token = list_.emplace_back();
    token.kind = kind;
    token.text = source_.text.substr(at_, length);
    token.place = place_;
    pass(length);
    return token;
  }

  void next() {
    const char c = look();
    if (c == '\n' || c == ';') {
      if (open_ > 0 || list_.empty() || list_.back().kind == TokenKind::line_end) return pass(1);
      add(TokenKind::line_end, 1);
    } else if (c == ' ' || c == '\t' || c == '\r') {
      pass(1);
    } else if (c == '#') {
      while (at_ < source_.text.size() && look() != '\n') pass(1);
    } else if (is_letter(c)) {
      std::size_t length = 1;
      while (is_letter(look(length)) || is_digit(look(length))) ++length;
      add(TokenKind::name, length);
    } else if (is_digit(c) || (c == '.' && is_digit(look(1)))) {
      number();
    } else if (c == '"' || c == '\'') {
      text(c);
    } else {
      sign();
    }
  }

  void number() {
    const char* begin = source_.text.data() + at_;
    const char* end = source_.text.data() + source_.text.size();
    double value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    auto length = static_cast<std::size_t>(stop - begin);
    if (error != std::errc() || !std::isfinite(value))
      fail_at(source_.file, place_, "a number that single precision holds, or double", fmt::format("'{}'", rest()));
    const std::string_view spelled(begin, length);
    const bool whole = spelled.find_first_of(".eE") == spelled.npos && value <= kLargestWhole;
    // The suffix of C's floats means nothing here.
    if (!whole && look(length) == 'f') ++length;
    if (is_letter(look(length)) || is_digit(look(length)))
      fail_at(source_.file, place_, "a number", fmt::format("'{}'", rest()));
    Token& token = add(TokenKind::number, length);
    token.number = value;
    token.whole = whole;
  }

  void text(char quote) {
    const std::size_t close = source_.text.find(quote, at_ + 1);
    if (close == std::string::npos) fail_at(source_.file, place_, "a quote that ends the text", "none");
    Token& token = add(TokenKind::text, close + 1 - at_);
    token.text = token.text.substr(1, token.text.size() - 2);
  }

  void sign() {
    for (const std::string_view sign : kSigns) {
      if (std::string_view(source_.text).substr(at_, sign.size()) != sign) continue;
      if (sign == "(" || sign == "[") ++open_;
      if ((sign == ")" || sign == "]") && open_ > 0) --open_;
      add(TokenKind::sign, sign.size());
      return;
    }
    const auto byte = static_cast<unsigned char>(look());
    fail_at(source_.file, place_, "a formula",
            byte >= 0x20 && byte < 0x7f ? fmt::format("'{}'", look()) : fmt::format("the byte 0x{:02x}", byte));
  }

  // The word that begins here.
  std::string rest() const {
    std::size_t length = 0;
    while (length < 20 && (is_letter(look(length)) || is_digit(look(length)) || look(length) == '.')) ++length;
    return source_.text.substr(at_, length);
  }

  const Excerpt& source_;
  Place place_;
  std::size_t at_ = 0;
  int open_ = 0;  // brackets
  std::vector<Token> list_;
};

}  // namespace

std::vector<Token> tokens_of(const Excerpt& text) { return Tokens(text).all(); }

}  // namespace oclc::custom

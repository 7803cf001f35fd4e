// Characters, words, names and quoted texts of the text form, with the line for messages.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "compiler/support/error.h"

namespace oclc {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& wanted) {
    space();
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string found(text_.substr(at_, std::min<std::size_t>(end - at_, 40)));
    fail(wanted, found.empty() ? (at_ >= text_.size() ? "the end of the text" : "the end of the line") : "'" + found + "'");
  }
  [[noreturn]] void fail(const std::string& wanted, const std::string& found) { fail(line(), wanted, found); }
  [[noreturn]] static void fail(std::size_t line, const std::string& wanted, const std::string& found) {
    throw CompileError({.stage = "parse", .wanted = fmt::format("line {}: wanted {}, found {}", line, wanted, found)});
  }

  std::size_t line() const {
    return 1 + static_cast<std::size_t>(
                   std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())), '\n'));
  }

  // Blanks and line ends, comments too.
  void lines() {
    for (;;) {
      space();
      if (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r'))
        ++at_;
      else if (text_.substr(at_, 2) == "//")
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        return;
    }
  }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool at_end() {
    lines();
    return at_ >= text_.size();
  }
  char peek() {
    space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }
  bool take_word(std::string_view word) {
    space();
    if (text_.substr(at_, word.size()) != word || (at_ + word.size() < text_.size() && is_word(text_[at_ + word.size()])))
      return false;
    at_ += word.size();
    return true;
  }
  std::string word(const std::string& wanted) {
    space();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == start) fail(wanted);
    return std::string(text_.substr(start, at_ - start));
  }
  // What may stand after '%' or be an output's name.
  std::string name(const std::string& wanted) {
    if (peek() == '"') return text();
    const std::size_t start = at_;
    while (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) > 32 && !std::strchr("(),={}[]\"%\\@", text_[at_]))
      ++at_;
    while (at_ > start && text_[at_ - 1] == ':') --at_;
    if (at_ == start) fail(wanted);
    return std::string(text_.substr(start, at_ - start));
  }
  // A quoted text.
  std::string text() {
    expect('"');
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size() || text_[at_] != '"') fail("'\"'");
    return unescaped(text_.substr(start, at_++ - start));
  }
  // The text up to the closing bracket of the one just taken, which is taken too.
  std::string_view enclosed(char close) {
    const std::size_t start = at_;
    for (int depth = 0; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (depth == 0 && text_[at_] == close) return text_.substr(start, at_++ - start);
      if (text_[at_] == '(' || text_[at_] == '[') ++depth;
      if (text_[at_] == ')' || text_[at_] == ']') --depth;
    }
    fail(fmt::format("'{}'", close));
  }
  std::string_view rest_of_line() {
    space();
    const std::size_t start = at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
    return text_.substr(start, at_ - start);
  }
  // A number's characters.
  std::string_view number() {
    space();
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '-' || text_[at_] == '+')) ++at_;
    if (at_ == start) fail("a number");
    return text_.substr(start, at_ - start);
  }
  // The comment at the end of the line, or nothing.
  std::string comment() {
    space();
    if (text_.substr(at_, 2) != "//") return {};
    at_ += 2;
    if (at_ < text_.size() && text_[at_] == ' ') ++at_;
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view raw = text_.substr(at_, end - at_);
    at_ = end;
    return unescaped(raw);
  }
  void end_of_line() {
    space();
    if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') fail("the end of the line");
  }

 private:
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
  }

  std::string unescaped(std::string_view raw) {
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\' || i + 1 == raw.size()) {
        out += raw[i];
        continue;
      }
      const char c = raw[++i];
      if (c == 'n') {
        out += '\n';
      } else if (c == 'x' && i + 2 < raw.size()) {
        unsigned value = 0;
        const auto [end, error] = std::from_chars(raw.data() + i + 1, raw.data() + i + 3, value, 16);
        if (error != std::errc() || end != raw.data() + i + 3) fail("two hexadecimal digits after \\x");
        out += static_cast<char>(value);
        i += 2;
      } else {
        out += c;
      }
    }
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace oclc

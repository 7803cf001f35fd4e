#include "compiler/codegen/text/constant_expression.h"

#include <charconv>

namespace oclc {
namespace {

class Evaluator {
 public:
  explicit Evaluator(std::string_view text) : text_(text) {}
  std::optional<std::int64_t> whole() {
    const auto v = choice();
    space();
    return ok_ && at_ == text_.size() ? std::optional(v) : std::nullopt;
  }

 private:
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    space();
    if (text_.substr(at_, token.size()) != token) return false;
    if (token.size() == 1 && at_ + 1 < text_.size() && (token == "<" || token == ">" || token == "|") &&
        (text_[at_ + 1] == '=' || text_[at_ + 1] == token[0]))
      return false;
    at_ += token.size();
    return true;
  }
  std::int64_t choice() {
    const std::int64_t c = either();
    if (!take("?")) return c;
    const std::int64_t a = choice();
    if (!take(":")) ok_ = false;
    const std::int64_t b = choice();
    return c ? a : b;
  }
  std::int64_t either() {
    std::int64_t v = both();
    for (;;) {
      if (take("||") || take("|")) {
        const std::int64_t r = both();
        v = (v != 0) || (r != 0);
      } else {
        return v;
      }
    }
  }
  std::int64_t both() {
    std::int64_t v = compare();
    while (take("&&")) {
      const std::int64_t r = compare();
      v = (v != 0) && (r != 0);
    }
    return v;
  }
  std::int64_t compare() {
    const std::int64_t v = sum();
    if (take("==")) return v == sum();
    if (take("!=")) return v != sum();
    if (take("<=")) return v <= sum();
    if (take(">=")) return v >= sum();
    if (take("<")) return v < sum();
    if (take(">")) return v > sum();
    return v;
  }
  std::int64_t sum() {
    std::int64_t v = term();
    for (;;) {
      if (take("+"))
        v += term();
      else if (take("-"))
        v -= term();
      else
        return v;
    }
  }
  std::int64_t term() {
    std::int64_t v = primary();
    for (;;) {
      const bool times = take("*"), over = !times && take("/");
      if (!times && !over && !take("%")) return v;
      const std::int64_t r = primary();
      if (!times && r == 0) {
        ok_ = false;
        return 0;
      }
      v = times ? v * r : over ? v / r : v % r;
    }
  }
  std::int64_t primary() {
    if (take("(size_t)")) return primary();
    if (take("(")) {
      const std::int64_t v = choice();
      if (!take(")")) ok_ = false;
      return v;
    }
    space();
    std::int64_t v = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (error != std::errc()) {
      ok_ = false;
      at_ = text_.size();
      return 0;
    }
    at_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

std::optional<std::int64_t> constant_value(std::string_view text) { return Evaluator(text).whole(); }

}  // namespace oclc

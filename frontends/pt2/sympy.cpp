// Expressions in sympy's notation.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "frontends/pt2/program.h"

namespace oclc::pt2 {
namespace {

constexpr int kDeepest = 64;

class SympyReader {
 public:
  SympyReader(std::string_view text, const Ranges& ranges) : all_(text), rest_(text), ranges_(ranges) {}

  Expr read() {
    const Expr e = expression(0);
    skip();
    if (!rest_.empty()) refuse();
    return e;
  }

 private:
  [[noreturn]] void refuse() const {
    fail("sizes of integers, symbols, sums, products, floor divisions, remainders, minima and maxima",
         fmt::format("'{}'", all_.substr(0, 200)), "fix the dimension when exporting");
  }

  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  bool take(char c) {
    skip();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void need(char c) {
    if (!take(c)) refuse();
  }

  std::int64_t number() {
    skip();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) refuse();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  // Whatever the locale.
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_of_name(char c) { return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  std::string_view word() {
    skip();
    std::size_t n = 0;
    while (n < rest_.size() && is_of_name(rest_[n])) ++n;
    const std::string_view w = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return w;
  }

  // Symbol('s0', positive=True, integer=True): what follows the name says nothing new.
  Expr symbol() {
    need('\'');
    const std::size_t end = rest_.find('\'');
    if (end == rest_.npos || end == 0) refuse();
    const std::string name(rest_.substr(0, end));
    if (is_digit(name[0]) || !std::all_of(name.begin(), name.end(), is_of_name)) refuse();
    const std::size_t close = rest_.find(')', end);
    if (close == rest_.npos) refuse();
    rest_.remove_prefix(close + 1);
    const auto range = ranges_.find(name);
    if (range == ranges_.end()) return Expr::symbol(name);
    const auto [low, high] = range->second;
    return low == high ? Expr(low) : Expr::symbol(name, low, high);
  }

  Expr power(const Expr& base, const Expr& exponent) const {
    if (!exponent.is_constant() || exponent.value() < 0 || exponent.value() > 16) refuse();
    Expr result = 1;
    for (std::int64_t i = 0; i < exponent.value(); ++i) result *= base;
    return result;
  }

  Expr combined(std::string_view name, const Expr& a, const Expr& b) const {
    if (name == "Add") return a + b;
    if (name == "Mul") return a * b;
    if (name == "Pow" || name == "PowByNatural") return power(a, b);
    if (name == "Max") return max(a, b);
    if (name == "Min") return min(a, b);
    if (b == Expr(0)) refuse();
    if (name == "FloorDiv" || name == "CleanDiv") return floor_div(a, b);
    if (name == "CeilDiv") return ceil_div(a, b);
    if (name == "Mod" || name == "PythonMod") return floor_mod(a, b);
    refuse();
  }

  Expr expression(int depth) {
    if (depth > kDeepest) refuse();
    skip();
    if (!rest_.empty() && (rest_.front() == '-' || std::isdigit(static_cast<unsigned char>(rest_.front())))) return number();
    const std::string_view name = word();
    need('(');
    if (name == "Symbol") return symbol();
    if (name == "Integer") {
      const std::int64_t value = number();
      need(')');
      return value;
    }
    Expr result = expression(depth + 1);
    bool alone = true;
    while (take(',')) {
      result = combined(name, result, expression(depth + 1));
      alone = false;
    }
    need(')');
    if (alone && name != "ToInt" && name != "Identity") refuse();
    return result;
  }

  std::string_view all_, rest_;
  const Ranges& ranges_;
};

}  // namespace

Expr parse_sympy(std::string_view text, const Ranges& ranges) { return SympyReader(text, ranges).read(); }

}  // namespace oclc::pt2

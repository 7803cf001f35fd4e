// Text, C source, reverse Polish code, parsing, substitution and evaluation of expressions.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "compiler/ir/expr_poly.h"
#include "compiler/support/error.h"
#include "runtime/package/expr_code.h"

namespace oclc {
namespace {

using Naming = std::function<std::string(std::string_view)>;
using package::ExprOp;

std::string print(const Expr& e, const Naming& name, bool c);

std::string grouped(const Expr& e, const Naming& name, bool c) {
  const ExprPoly* poly = ExprAccess::poly(e);
  const bool simple = poly ? poly->terms.size() == 1 && poly->terms[0].coef == 1 && poly->terms[0].factors.size() == 1 &&
                                 poly->terms[0].factors[0]->kind == ExprAtom::Kind::symbol
                           : e.value() >= 0;
  return simple ? print(e, name, c) : "(" + print(e, name, c) + ")";
}

// OpenCL's min and max need operands of one type, and literals are int.
std::string extreme(std::string_view function, const std::string& a, const std::string& b, bool c) {
  return c ? fmt::format("{}((long)({}), (long)({}))", function, a, b) : fmt::format("{}({}, {})", function, a, b);
}

std::string print(const ExprAtom& atom, const Naming& name, bool c) {
  switch (atom.kind) {
    case ExprAtom::Kind::symbol:
      return name(atom.key);
    case ExprAtom::Kind::floor_div:
      if (c && !(known_nonnegative(atom.a) && known_nonnegative(atom.b)))
        return fmt::format("floor_div({}, {})", print(atom.a, name, c), print(atom.b, name, c));
      return fmt::format("{} / {}", grouped(atom.a, name, c), grouped(atom.b, name, c));
    case ExprAtom::Kind::floor_mod:
      if (c && !(known_nonnegative(atom.a) && known_nonnegative(atom.b)))
        return fmt::format("floor_mod({}, {})", print(atom.a, name, c), print(atom.b, name, c));
      return fmt::format("{} % {}", grouped(atom.a, name, c), grouped(atom.b, name, c));
    case ExprAtom::Kind::min:
      return extreme("min", print(atom.a, name, c), print(atom.b, name, c), c);
    case ExprAtom::Kind::max:
      return extreme("max", print(atom.a, name, c), print(atom.b, name, c), c);
  }
  return {};
}

std::string print(const Expr& e, const Naming& name, bool c) {
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly) return std::to_string(e.value());
  std::string text;
  for (const ExprTerm& term : poly->terms) {
    std::vector<std::string> parts;
    const std::uint64_t magnitude =
        term.coef < 0 ? 0 - static_cast<std::uint64_t>(term.coef) : static_cast<std::uint64_t>(term.coef);
    if (magnitude != 1 || term.factors.empty()) parts.push_back(std::to_string(magnitude));
    for (const auto& factor : term.factors) {
      const bool division = factor->kind == ExprAtom::Kind::floor_div || factor->kind == ExprAtom::Kind::floor_mod;
      const std::string piece = print(*factor, name, c);
      const bool alone = term.factors.size() == 1 && magnitude == 1 && term.coef > 0 && poly->terms.size() == 1;
      parts.push_back(division && !alone && piece[0] != 'f' ? "(" + piece + ")" : piece);
    }
    if (text.empty())
      text = term.coef < 0 ? "-" : "";
    else
      text += term.coef < 0 ? " - " : " + ";
    text += fmt::format("{}", fmt::join(parts, "*"));
  }
  return text;
}

void collect(const Expr& e, std::set<std::string>& into) {
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly) return;
  for (const ExprTerm& term : poly->terms) {
    for (const auto& factor : term.factors) {
      if (factor->kind == ExprAtom::Kind::symbol) {
        into.insert(factor->key);
      } else {
        collect(factor->a, into);
        collect(factor->b, into);
      }
    }
  }
}

void emit(const Expr& e, const std::function<std::int64_t(std::string_view)>& index_of, std::vector<std::int64_t>& out);

void emit(const ExprAtom& atom, const std::function<std::int64_t(std::string_view)>& index_of, std::vector<std::int64_t>& out) {
  if (atom.kind == ExprAtom::Kind::symbol) {
    out.push_back(static_cast<std::int64_t>(ExprOp::symbol));
    out.push_back(index_of(atom.key));
    return;
  }
  emit(atom.a, index_of, out);
  emit(atom.b, index_of, out);
  const ExprOp op = atom.kind == ExprAtom::Kind::floor_div   ? ExprOp::floor_div
                    : atom.kind == ExprAtom::Kind::floor_mod ? ExprOp::mod
                    : atom.kind == ExprAtom::Kind::min       ? ExprOp::min
                                                             : ExprOp::max;
  out.push_back(static_cast<std::int64_t>(op));
}

void emit_constant(std::int64_t value, std::vector<std::int64_t>& out) {
  out.push_back(static_cast<std::int64_t>(ExprOp::constant));
  out.push_back(value);
}

void emit(const Expr& e, const std::function<std::int64_t(std::string_view)>& index_of, std::vector<std::int64_t>& out) {
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly) return emit_constant(e.value(), out);
  bool first_term = true;
  for (const ExprTerm& term : poly->terms) {
    bool first_factor = true;
    if (term.coef != 1 || term.factors.empty()) {
      emit_constant(term.coef, out);
      first_factor = false;
    }
    for (const auto& factor : term.factors) {
      emit(*factor, index_of, out);
      if (!first_factor) out.push_back(static_cast<std::int64_t>(ExprOp::mul));
      first_factor = false;
    }
    if (!first_term) out.push_back(static_cast<std::int64_t>(ExprOp::add));
    first_term = false;
  }
}

class ExprParser {
 public:
  ExprParser(std::string_view text, const Substitution& known) : text_(text), known_(known) {}

  std::optional<Expr> whole() {
    auto e = sum();
    space();
    return e && at_ == text_.size() ? e : std::nullopt;
  }

 private:
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<Expr> sum() {
    if (++depth_ > 64) return std::nullopt;
    const bool minus = take('-');
    auto left = factor_chain();
    if (left && minus) left = -*left;
    while (left) {
      const bool add = take('+');
      if (!add && !take('-')) break;
      const auto right = factor_chain();
      if (!right) return std::nullopt;
      left = add ? *left + *right : *left - *right;
    }
    --depth_;
    return left;
  }
  std::optional<Expr> factor_chain() {
    auto left = primary();
    while (left) {
      space();
      const char op = at_ < text_.size() ? text_[at_] : '\0';
      if (op != '*' && op != '/' && op != '%') break;
      ++at_;
      const auto right = primary();
      if (!right || (op != '*' && *right == Expr(0))) return std::nullopt;
      left = op == '*' ? *left * *right : op == '/' ? floor_div(*left, *right) : floor_mod(*left, *right);
    }
    return left;
  }
  std::optional<Expr> primary() {
    space();
    if (take('(')) {
      auto e = sum();
      return e && take(')') ? e : std::nullopt;
    }
    const std::size_t start = at_;
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc()) return std::nullopt;
      at_ = static_cast<std::size_t>(end - text_.data());
      return Expr(value);
    }
    if (at_ < text_.size() && text_[at_] == '%') ++at_;  // the value of a kernel's node
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                  text_[at_] == '.' || text_[at_] == '$'))
      ++at_;
    const std::string name(text_.substr(start, at_ - start));
    if (name.empty() || name == "%") return std::nullopt;
    if ((name == "min" || name == "max") && take('(')) {
      const auto a = sum();
      if (!a || !take(',')) return std::nullopt;
      const auto b = sum();
      if (!b || !take(')')) return std::nullopt;
      return name == "min" ? min(*a, *b) : max(*a, *b);
    }
    const auto known = known_.find(name);
    return known != known_.end() ? known->second : Expr::symbol(name);
  }

  std::string_view text_;
  const Substitution& known_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string Expr::text() const {
  return print(
      *this, [](std::string_view s) { return std::string(s); }, false);
}

std::string Expr::c_text(const Naming& name_of) const { return print(*this, name_of, true); }

std::vector<std::string> Expr::symbols() const {
  std::set<std::string> found;
  collect(*this, found);
  return {found.begin(), found.end()};
}

bool Expr::uses(std::string_view symbol) const {
  const auto all = symbols();
  return std::find(all.begin(), all.end(), symbol) != all.end();
}

std::optional<Expr> Expr::coefficient(std::string_view symbol) const {
  const ExprPoly* poly = ExprAccess::poly(*this);
  if (!poly) return Expr(0);
  Expr result(0);
  for (const ExprTerm& term : poly->terms) {
    ExprTerm rest{term.coef, {}};
    int power = 0;
    for (const auto& factor : term.factors) {
      if (factor->kind == ExprAtom::Kind::symbol) {
        if (factor->key == symbol)
          ++power;
        else
          rest.factors.push_back(factor);
        continue;
      }
      if (factor->a.uses(symbol) || factor->b.uses(symbol)) return std::nullopt;
      rest.factors.push_back(factor);
    }
    if (power > 1) return std::nullopt;
    if (power == 1) result += rest.factors.empty() ? Expr(rest.coef) : ExprAccess::make({rest});
  }
  return result;
}

Expr Expr::substitute(const Substitution& by) const {
  const ExprPoly* poly = ExprAccess::poly(*this);
  if (!poly) return *this;
  Expr result(0);
  for (const ExprTerm& term : poly->terms) {
    Expr part(term.coef);
    for (const auto& factor : term.factors) {
      if (factor->kind == ExprAtom::Kind::symbol) {
        const auto at = by.find(factor->key);
        part *= at != by.end() ? at->second : ExprAccess::make({ExprTerm{1, {factor}}});
        continue;
      }
      const Expr a = factor->a.substitute(by), b = factor->b.substitute(by);
      switch (factor->kind) {
        case ExprAtom::Kind::floor_div:
          part *= floor_div(a, b);
          break;
        case ExprAtom::Kind::floor_mod:
          part *= floor_mod(a, b);
          break;
        case ExprAtom::Kind::min:
          part *= min(a, b);
          break;
        default:
          part *= max(a, b);
          break;
      }
    }
    result += part;
  }
  return result;
}

std::optional<std::int64_t> Expr::evaluate(const SymbolValues& values) const {
  std::vector<std::string> names = symbols();
  std::vector<std::int64_t> bound;
  for (const std::string& name : names) {
    const auto at = values.find(name);
    if (at == values.end()) return std::nullopt;
    bound.push_back(at->second);
  }
  const auto rpn = code([&](std::string_view name) {
    return static_cast<std::int64_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
  });
  return package::evaluate(rpn, bound);
}

std::vector<std::int64_t> Expr::code(const std::function<std::int64_t(std::string_view)>& index_of) const {
  std::vector<std::int64_t> out;
  emit(*this, index_of, out);
  return out;
}

std::optional<Expr> parse_expr(std::string_view text, const Substitution& known) { return ExprParser(text, known).whole(); }

std::string text_of(std::span<const Expr> shape) {
  std::vector<std::string> parts;
  for (const Expr& e : shape) parts.push_back(e.text());
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

}  // namespace oclc

#include "compiler/ir/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/expr_poly.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Atom = std::shared_ptr<const ExprAtom>;

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r))
    throw CompileError({.stage = "shapes", .wanted = "sizes below 2^63", .found = fmt::format("{} + {}", a, b)});
  return r;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r))
    throw CompileError({.stage = "shapes", .wanted = "sizes below 2^63", .found = fmt::format("{} * {}", a, b)});
  return r;
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return (a % b != 0 && ((a % b < 0) != (b < 0))) ? q - 1 : q;
}

bool atom_less(const Atom& a, const Atom& b) { return a->key < b->key; }

// Graded order: more factors first, then by names; the constant term is last.
bool factors_less(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (const int order = a[i]->key.compare(b[i]->key); order != 0) return order < 0;
  }
  return false;
}

bool same_atom(const Atom& a, const Atom& b) { return a == b || (a->hash == b->hash && a->key == b->key); }

bool same_factors(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_atom);
}

void insert_term(std::vector<ExprTerm>& terms, const ExprTerm& term) {
  if (term.coef == 0) return;
  const auto at = std::lower_bound(terms.begin(), terms.end(), term,
                                   [](const ExprTerm& x, const ExprTerm& y) { return factors_less(x.factors, y.factors); });
  if (at != terms.end() && same_factors(at->factors, term.factors)) {
    at->coef = checked_add(at->coef, term.coef);
    if (at->coef == 0) terms.erase(at);
  } else {
    terms.insert(at, term);
  }
}

std::size_t size_of(const std::vector<ExprTerm>& terms) {
  std::size_t size = 0;
  for (const ExprTerm& term : terms) {
    size += term.coef != 1 || term.factors.empty() ? 1 : 0;
    for (const Atom& factor : term.factors) size += factor->size;
  }
  return size;
}

void check_size(std::size_t size) {
  if (size > kMostExprSize) throw ExprTooLarge(size);
}

Expr from_terms(std::vector<ExprTerm> terms) {
  if (terms.empty()) return Expr(0);
  if (terms.size() == 1 && terms[0].factors.empty()) return Expr(terms[0].coef);
  check_size(size_of(terms));
  return ExprAccess::make(std::move(terms));
}

std::vector<ExprTerm> terms_of(const Expr& e) {
  if (const auto* poly = ExprAccess::poly(e)) return poly->terms;
  if (e.value() == 0) return {};
  return {ExprTerm{e.value(), {}}};
}

Expr from_atom(const std::shared_ptr<ExprAtom>& atom) {
  atom->hash = std::hash<std::string>()(atom->key);
  return from_terms({ExprTerm{1, {atom}}});
}

}  // namespace

Expr make_opaque(ExprAtom::Kind kind, const Expr& a, const Expr& b) {
  auto atom = std::make_shared<ExprAtom>();
  atom->kind = kind;
  atom->a = a;
  atom->b = b;
  atom->size = a.size() + b.size();
  check_size(atom->size);
  set_bounds(*atom);
  if (kind == ExprAtom::Kind::floor_mod && terms_of(b).size() == 1) atom->quotient = floor_div(a, b);
  switch (kind) {
    case ExprAtom::Kind::floor_div:
      atom->key = fmt::format("({}) / ({})", a.text(), b.text());
      break;
    case ExprAtom::Kind::floor_mod:
      atom->key = fmt::format("({}) % ({})", a.text(), b.text());
      break;
    case ExprAtom::Kind::min:
      atom->key = fmt::format("min({}, {})", a.text(), b.text());
      break;
    default:
      atom->key = fmt::format("max({}, {})", a.text(), b.text());
      break;
  }
  return from_atom(atom);
}

namespace {

// term / divisor if it divides exactly.
std::optional<ExprTerm> divide_term(const ExprTerm& term, const ExprTerm& divisor) {
  if (term.coef % divisor.coef != 0) return std::nullopt;
  std::vector<Atom> rest = term.factors;
  for (const Atom& factor : divisor.factors) {
    const auto at = std::find_if(rest.begin(), rest.end(), [&](const Atom& x) { return x->key == factor->key; });
    if (at == rest.end()) return std::nullopt;
    rest.erase(at);
  }
  return ExprTerm{term.coef / divisor.coef, std::move(rest)};
}

// a = quotient * b + rest by division of polynomials, taking every term that the leading term of b divides.
std::pair<Expr, Expr> split(const Expr& a, const Expr& b) {
  const auto divisor = terms_of(b);
  Expr quotient(0), rest(0), left = a;
  for (int guard = 0; guard < 1000; ++guard) {
    const auto terms = terms_of(left);
    if (terms.empty()) break;
    const auto part = divide_term(terms[0], divisor[0]);
    if (part) {
      const Expr q = from_terms({*part});
      quotient += q;
      left = left - q * b;
    } else {
      const Expr leading = from_terms({terms[0]});
      rest += leading;
      left = left - leading;
    }
  }
  // Constants: move whole multiples of a constant divisor into the quotient so that the rest's constant is in [0, b).
  if (const auto d = b.constant(); d && *d > 0) {
    const auto terms = terms_of(rest);
    if (!terms.empty() && terms.back().factors.empty()) {
      const std::int64_t q = floor_quotient(terms.back().coef, *d);
      quotient += Expr(q);
      rest = rest - Expr(checked_mul(q, *d));
    }
  }
  return {quotient, rest};
}

// c*b*F*floor_div(x, b) + c*F*floor_mod(x, b) = c*F*x, once; nothing if no such pair is present.
std::optional<Expr> join_division(const std::vector<ExprTerm>& terms) {
  for (const ExprTerm& term : terms) {
    for (std::size_t i = 0; i < term.factors.size(); ++i) {
      const ExprAtom& mod = *term.factors[i];
      if (mod.kind != ExprAtom::Kind::floor_mod) continue;
      const auto b = terms_of(mod.b);
      if (b.size() != 1) continue;
      ExprTerm other{checked_mul(term.coef, b[0].coef), term.factors};
      other.factors.erase(other.factors.begin() + static_cast<std::ptrdiff_t>(i));
      const std::vector<Atom> shared = other.factors;
      other.factors.insert(other.factors.end(), b[0].factors.begin(), b[0].factors.end());
      const auto quotient = terms_of(mod.quotient);
      if (quotient.size() != 1 || quotient[0].coef != 1) continue;
      other.factors.insert(other.factors.end(), quotient[0].factors.begin(), quotient[0].factors.end());
      std::sort(other.factors.begin(), other.factors.end(), atom_less);
      const auto at = std::find_if(terms.begin(), terms.end(), [&](const ExprTerm& t) {
        return same_factors(t.factors, other.factors) && t.coef == other.coef;
      });
      if (at == terms.end()) continue;
      std::vector<ExprTerm> left;
      for (const ExprTerm& t : terms) {
        if (&t != &term && &t != &*at) left.push_back(t);
      }
      return from_terms(std::move(left)) + from_terms({ExprTerm{term.coef, shared}}) * mod.a;
    }
  }
  return std::nullopt;
}

Expr tidy(std::vector<ExprTerm> terms) {
  const bool has_mod = std::any_of(terms.begin(), terms.end(), [](const ExprTerm& t) {
    return std::any_of(t.factors.begin(), t.factors.end(), [](const Atom& a) { return a->kind == ExprAtom::Kind::floor_mod; });
  });
  if (has_mod) {
    if (auto joined = join_division(terms)) return *joined;
  }
  return from_terms(std::move(terms));
}

}  // namespace

std::size_t Expr::size() const { return poly_ ? size_of(poly_->terms) : 1; }

Expr ExprAccess::make(std::vector<ExprTerm> terms) {
  Expr e;
  auto poly = std::make_shared<ExprPoly>();
  poly->terms = std::move(terms);
  e.poly_ = std::move(poly);
  return e;
}

Expr Expr::symbol(std::string name, std::int64_t lo, std::int64_t hi, std::int64_t typical) {
  auto atom = std::make_shared<ExprAtom>();
  atom->kind = ExprAtom::Kind::symbol;
  atom->key = std::move(name);
  atom->lo = lo;
  atom->hi = hi;
  atom->typical = typical;
  return from_atom(atom);
}

Expr Expr::axis(std::string name, const Expr& extent) {
  if (extent == Expr(1)) return Expr(0);
  auto atom = std::make_shared<ExprAtom>();
  atom->kind = ExprAtom::Kind::symbol;
  atom->key = std::move(name);
  atom->lo = 0;
  const std::int64_t hi = extent.upper();
  atom->hi = hi == kUnbounded ? kUnbounded : std::max<std::int64_t>(hi - 1, 0);
  atom->has_extent = true;
  atom->a = extent;
  return from_atom(atom);
}

std::optional<std::int64_t> Expr::constant() const { return poly_ ? std::nullopt : std::optional(value_); }

std::int64_t Expr::value() const {
  OCLC_CHECK(!poly_, "not a constant: " + text());
  return value_;
}

std::optional<std::string> Expr::symbol_name() const {
  if (!poly_ || poly_->terms.size() != 1) return std::nullopt;
  const ExprTerm& t = poly_->terms[0];
  if (t.coef != 1 || t.factors.size() != 1 || t.factors[0]->kind != ExprAtom::Kind::symbol) return std::nullopt;
  return t.factors[0]->key;
}

Expr operator+(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return Expr(checked_add(a.value(), b.value()));
  auto terms = terms_of(a);
  for (const ExprTerm& t : terms_of(b)) insert_term(terms, t);
  return tidy(std::move(terms));
}

Expr operator-(const Expr& a, const Expr& b) { return a + b * Expr(-1); }

Expr operator*(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return Expr(checked_mul(a.value(), b.value()));
  const std::size_t size = a.size() * b.size();
  if (size > kMostExprSize * kMostExprSize / 64) throw ExprTooLarge(size);  // before it takes its time
  std::vector<ExprTerm> terms;
  const auto right = terms_of(b);
  for (const ExprTerm& x : terms_of(a)) {
    for (const ExprTerm& y : right) {
      ExprTerm t{checked_mul(x.coef, y.coef), x.factors};
      t.factors.insert(t.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(t.factors.begin(), t.factors.end(), atom_less);
      insert_term(terms, t);
    }
  }
  return tidy(std::move(terms));
}

bool operator==(const Expr& a, const Expr& b) {
  if (a.is_constant() || b.is_constant()) return a.is_constant() && b.is_constant() && a.value_ == b.value_;
  if (a.poly_ == b.poly_) return true;
  const auto &x = a.poly_->terms, &y = b.poly_->terms;
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](const ExprTerm& s, const ExprTerm& t) {
           return s.coef == t.coef && same_factors(s.factors, t.factors);
         });
}

bool operator<(const Expr& a, const Expr& b) {
  const auto x = terms_of(a), y = terms_of(b);
  return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), [](const ExprTerm& s, const ExprTerm& t) {
    if (!same_factors(s.factors, t.factors)) return factors_less(s.factors, t.factors);
    return s.coef < t.coef;
  });
}

namespace {

// a = g * x + r with g > 1 a divisor of d and 0 <= r < g, r not 0.
struct Blocked {
  std::int64_t g = 1;
  Expr x, r;
};

std::optional<Blocked> blocked(const std::vector<ExprTerm>& terms, std::int64_t d) {
  if (terms.size() < 2) return std::nullopt;
  for (const ExprTerm& of : terms) {
    const std::int64_t g = of.factors.empty() ? 1 : std::gcd(of.coef, d);
    if (g <= 1) continue;
    std::vector<ExprTerm> x, r;
    for (const ExprTerm& t : terms) (t.coef % g == 0 ? x : r).push_back({t.coef % g == 0 ? t.coef / g : t.coef, t.factors});
    if (r.empty()) continue;
    const Expr rest = from_terms(std::move(r));
    if (known_nonnegative(rest) && known_less(rest, Expr(g))) return Blocked{g, from_terms(std::move(x)), rest};
  }
  return std::nullopt;
}

}  // namespace

Expr floor_div(const Expr& a, const Expr& b) {
  OCLC_CHECK(b != Expr(0), "division of " + a.text() + " by zero");
  if (a.is_constant() && b.is_constant()) return Expr(floor_quotient(a.value(), b.value()));
  if (b == Expr(1)) return a;
  auto [quotient, rest] = split(a, b);
  if (rest == Expr(0)) return quotient;
  if (known_nonnegative(rest) && known_less(rest, b)) return quotient;
  if (const auto d = b.constant(); d && *d > 0) {
    // floor((g*X + c) / (g*d)) = floor((X + floor(c/g)) / d)
    auto terms = terms_of(rest);
    std::int64_t g = *d, c = 0;
    for (const ExprTerm& t : terms) {
      if (t.factors.empty())
        c = t.coef;
      else
        g = std::gcd(g, t.coef);
    }
    if (g > 1) {
      std::vector<ExprTerm> reduced;
      for (const ExprTerm& t : terms) {
        if (!t.factors.empty()) reduced.push_back({t.coef / g, t.factors});
      }
      return quotient + floor_div(from_terms(std::move(reduced)) + Expr(floor_quotient(c, g)), Expr(*d / g));
    }
    // floor((g*X + R) / (g*d)) = floor(X / d) for 0 <= R < g
    if (const auto block = blocked(terms, *d)) return quotient + floor_div(block->x, Expr(*d / block->g));
    // floor(floor(x / p) / d) = floor(x / (p*d))
    if (terms.size() == 1 && terms[0].coef == 1 && terms[0].factors.size() == 1) {
      const ExprAtom& inner = *terms[0].factors[0];
      if (inner.kind == ExprAtom::Kind::floor_div && inner.b.is_constant() && inner.b.value() > 0)
        return quotient + floor_div(inner.a, inner.b * b);
    }
    if (const auto extreme = quotient_of_extreme(rest, *d)) return quotient + *extreme;
  }
  return quotient + make_opaque(ExprAtom::Kind::floor_div, rest, b);
}

Expr floor_mod(const Expr& a, const Expr& b) {
  OCLC_CHECK(b != Expr(0), "remainder of " + a.text() + " by zero");
  if (a.is_constant() && b.is_constant()) return a - b * floor_div(a, b);
  if (b == Expr(1)) return Expr(0);
  const Expr rest = split(a, b).second;
  if (rest == Expr(0) || (known_nonnegative(rest) && known_less(rest, b))) return rest;
  if (const auto d = b.constant(); d && *d > 0) {
    const auto terms = terms_of(rest);
    // (g*X) mod (g*d) = g * (X mod d)
    std::int64_t g = *d;
    for (const ExprTerm& t : terms) g = std::gcd(g, t.coef);
    if (g > 1) {
      std::vector<ExprTerm> reduced;
      for (const ExprTerm& t : terms) reduced.push_back({t.coef / g, t.factors});
      return Expr(g) * floor_mod(from_terms(std::move(reduced)), Expr(*d / g));
    }
    // (g*X + R) mod (g*d) = g * (X mod d) + R for 0 <= R < g
    if (const auto block = blocked(terms, *d)) return Expr(block->g) * floor_mod(block->x, Expr(*d / block->g)) + block->r;
    // (x mod (k*d)) mod d = x mod d
    if (terms.size() == 1 && terms[0].coef == 1 && terms[0].factors.size() == 1) {
      const ExprAtom& inner = *terms[0].factors[0];
      if (inner.kind == ExprAtom::Kind::floor_mod && inner.b.is_constant() && inner.b.value() % *d == 0)
        return floor_mod(inner.a, b);
    }
  }
  return make_opaque(ExprAtom::Kind::floor_mod, rest, b);
}

Expr ceil_div(const Expr& a, const Expr& b) { return floor_div(a + b - 1, b); }

Expr product(std::span<const Expr> factors) {
  Expr result(1);
  for (const Expr& f : factors) result *= f;
  return result;
}

}  // namespace oclc

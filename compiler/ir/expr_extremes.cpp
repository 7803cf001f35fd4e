// Minima and maxima of expressions.
#include <algorithm>

#include "compiler/ir/expr_poly.h"

namespace oclc {
namespace {

using Kind = ExprAtom::Kind;

struct Extreme {
  Kind kind;
  Expr open;
  std::int64_t number;
};

// `e` as a minimum or maximum of something and a number.
std::optional<Extreme> with_number(const Expr& e) {
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly || poly->terms.size() != 1 || poly->terms[0].coef != 1 || poly->terms[0].factors.size() != 1) return std::nullopt;
  const ExprAtom& atom = *poly->terms[0].factors[0];
  if ((atom.kind != Kind::min && atom.kind != Kind::max) || atom.a.is_constant() == atom.b.is_constant()) return std::nullopt;
  const bool first = atom.a.is_constant();
  return Extreme{atom.kind, first ? atom.b : atom.a, (first ? atom.a : atom.b).value()};
}

Expr of_kind(Kind kind, const Expr& a, const Expr& b) { return kind == Kind::min ? min(a, b) : max(a, b); }

Expr extreme_of(Kind kind, const Expr& a, const Expr& b) {
  // max(max(x, 2), 3) = max(x, 3)
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (!other->is_constant()) continue;
    const auto inner = with_number(*one);
    if (inner && inner->kind == kind) return of_kind(kind, inner->open, of_kind(kind, Expr(inner->number), *other));
  }
  return b < a ? make_opaque(kind, b, a) : make_opaque(kind, a, b);
}

}  // namespace

Expr min(const Expr& a, const Expr& b) {
  if (known_less_equal(a, b)) return a;
  if (known_less_equal(b, a)) return b;
  return extreme_of(Kind::min, a, b);
}

Expr max(const Expr& a, const Expr& b) {
  if (known_less_equal(a, b)) return b;
  if (known_less_equal(b, a)) return a;
  return extreme_of(Kind::max, a, b);
}

std::optional<Expr> quotient_of_extreme(const Expr& e, std::int64_t divisor) {
  // The constant term is the last one.
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly || divisor < 1) return std::nullopt;
  const std::int64_t more = poly->terms.back().factors.empty() ? poly->terms.back().coef : 0;
  const auto extreme = with_number(e - Expr(more));
  if (!extreme) return std::nullopt;
  const Expr by(divisor);
  return of_kind(extreme->kind, floor_div(extreme->open + Expr(more), by), floor_div(Expr(extreme->number) + Expr(more), by));
}

}  // namespace oclc

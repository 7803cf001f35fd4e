// The inside of Expr, for the files that implement it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"

namespace oclc {

struct ExprAtom {
  enum class Kind { symbol, floor_div, floor_mod, min, max };
  Kind kind = Kind::symbol;
  std::string key;                       // a symbol's name, else the canonical text; identity of the atom
  std::size_t hash = 0;                  // of the key
  std::int64_t lo = 1, hi = kUnbounded;  // bounds of its value
  std::int64_t typical = 0;              // symbol: a likely value, or 0
  bool has_extent = false;               // symbol: an axis, value < a
  Expr a, b;                             // operands; an axis' extent in `a`
  Expr quotient;                         // floor_mod: floor_div(a, b), which sums look for
  std::size_t size = 1;                  // see Expr::size
};

struct ExprTerm {
  std::int64_t coef = 0;
  std::vector<std::shared_ptr<const ExprAtom>> factors;  // sorted by key; empty: the constant term
};

struct ExprPoly {
  std::vector<ExprTerm> terms;  // sorted, no two with the same factors, no zero coefficients
};

// Bounds of an atom that is no symbol, from those of its operands.
void set_bounds(ExprAtom& atom);

// A division, remainder, minimum or maximum as it is written.
Expr make_opaque(ExprAtom::Kind kind, const Expr& a, const Expr& b);
// floor_div(max(x, 3) + 1, 2) = max(floor_div(x + 1, 2), 2), and so for minima; nothing for what is no such sum.
std::optional<Expr> quotient_of_extreme(const Expr& e, std::int64_t divisor);

struct ExprAccess {
  static const ExprPoly* poly(const Expr& e) { return e.poly_.get(); }
  static Expr make(std::vector<ExprTerm> terms);
};

}  // namespace oclc

// Bounds of expressions and proofs of non-negativity.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compiler/ir/expr_poly.h"

namespace oclc {
namespace {

struct Interval {
  std::int64_t lo, hi;  // kUnbounded / -kUnbounded stand for infinities
};

bool infinite(std::int64_t v) { return v == kUnbounded || v <= -kUnbounded; }

std::int64_t clamp128(__int128 v) {
  if (v >= kUnbounded) return kUnbounded;
  if (v <= -static_cast<__int128>(kUnbounded)) return -kUnbounded;
  return static_cast<std::int64_t>(v);
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a > 0) == (b > 0) ? kUnbounded : -kUnbounded;
  return clamp128(static_cast<__int128>(a) * b);
}

std::int64_t plus(std::int64_t a, std::int64_t b, std::int64_t if_unknown) {
  if (infinite(a) && infinite(b) && (a > 0) != (b > 0)) return if_unknown;
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  return clamp128(static_cast<__int128>(a) + b);
}

Interval multiply(Interval x, Interval y) {
  const std::int64_t p[] = {times(x.lo, y.lo), times(x.lo, y.hi), times(x.hi, y.lo), times(x.hi, y.hi)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Interval interval(const Expr& e);

// By 0 there is no value: a divisor from 0 on is one from 1 on.
Interval divisors(const Expr& e) {
  const Interval d = interval(e);
  return {d.lo == 0 ? 1 : d.lo, d.hi};
}

Interval bounds_of(const ExprAtom& atom) {
  switch (atom.kind) {
    case ExprAtom::Kind::symbol:
      return {atom.lo, atom.hi};
    case ExprAtom::Kind::floor_div: {
      const Interval x = interval(atom.a), d = divisors(atom.b);
      if (d.lo < 1) return {-kUnbounded, kUnbounded};
      const auto divide = [](std::int64_t v, std::int64_t by) -> std::int64_t {
        if (infinite(v)) return v;
        if (infinite(by)) return v < 0 ? -1 : 0;
        return v >= 0 ? v / by : -((-v + by - 1) / by);
      };
      return {std::min(divide(x.lo, d.lo), divide(x.lo, d.hi)), std::max(divide(x.hi, d.lo), divide(x.hi, d.hi))};
    }
    case ExprAtom::Kind::floor_mod: {
      const Interval d = divisors(atom.b);
      if (d.lo < 1) return {-kUnbounded, kUnbounded};
      return {0, infinite(d.hi) ? kUnbounded : d.hi - 1};
    }
    case ExprAtom::Kind::min: {
      const Interval x = interval(atom.a), y = interval(atom.b);
      return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    }
    case ExprAtom::Kind::max: {
      const Interval x = interval(atom.a), y = interval(atom.b);
      return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    }
  }
  return {-kUnbounded, kUnbounded};
}

Interval interval(const ExprAtom& atom) { return {atom.lo, atom.hi}; }

Interval interval(const Expr& e) {
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly) return {e.value(), e.value()};
  Interval sum{0, 0};
  for (const ExprTerm& term : poly->terms) {
    Interval part{term.coef, term.coef};
    for (const auto& factor : term.factors) part = multiply(part, interval(*factor));
    sum = {plus(sum.lo, part.lo, -kUnbounded), plus(sum.hi, part.hi, kUnbounded)};
  }
  return sum;
}

// The symbols that occur directly as factors, not inside divisions.
std::vector<std::shared_ptr<const ExprAtom>> factor_symbols(const Expr& e) {
  std::vector<std::shared_ptr<const ExprAtom>> found;
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly) return found;
  for (const ExprTerm& term : poly->terms) {
    for (const auto& factor : term.factors) {
      const bool seen = std::any_of(found.begin(), found.end(), [&](const auto& f) { return f->key == factor->key; });
      if (factor->kind == ExprAtom::Kind::symbol && !seen) found.push_back(factor);
    }
  }
  return found;
}

// Every symbol s becomes s + lo(s): if then no coefficient is negative, the expression is at least its constant term.
bool shifted_nonnegative(const Expr& e) {
  Expr shifted = e;
  for (const auto& symbol : factor_symbols(e)) {
    if (infinite(symbol->lo)) return false;
    if (symbol->lo == 0) continue;
    shifted = shifted.substitute({{symbol->key, Expr::symbol(symbol->key, 0, kUnbounded) + Expr(symbol->lo)}});
  }
  const ExprPoly* poly = ExprAccess::poly(shifted);
  if (!poly) return shifted.value() >= 0;
  std::int64_t least = 0;
  for (const ExprTerm& term : poly->terms) {
    Interval part{term.coef, term.coef};
    for (const auto& factor : term.factors) {
      part = multiply(part, factor->kind == ExprAtom::Kind::symbol ? Interval{0, kUnbounded} : interval(*factor));
    }
    least = plus(least, part.lo, -kUnbounded);
  }
  return least >= 0;
}

// The work of a proof. One of a shape or an index of a network takes tens of steps, each in proportion to its expression.
constexpr std::size_t kMostProofWork = 1 << 16;
thread_local std::size_t proof_work = 0;
thread_local bool in_proof = false;

// What a proof substitutes makes divisions anew, which ask for proofs: they get none, since these would grow exponentially with
// the divisions inside of one another.
class Proof {
 public:
  Proof() {
    proof_work = 0;
    in_proof = true;
  }
  ~Proof() { in_proof = false; }
  Proof(const Proof&) = delete;
  Proof& operator=(const Proof&) = delete;
  // False if the work is done with.
  static bool take(const Expr& e) { return (proof_work += 8 + e.size()) <= kMostProofWork; }
};

bool nonnegative(const Expr& e, int depth);

// `e` with the axes of symbolic extent at the ends where it is largest (or smallest); nothing if that takes none away.
std::optional<Expr> without_axes(const Expr& e, bool largest, int depth) {
  Expr result = e;
  bool changed = false;
  for (const auto& symbol : factor_symbols(e)) {
    if (!symbol->has_extent) continue;
    const auto coefficient = e.coefficient(symbol->key);
    if (!coefficient) return std::nullopt;
    const bool rising = nonnegative(*coefficient, depth + 1);
    if (!rising && !nonnegative(-*coefficient, depth + 1)) return std::nullopt;
    result = result.substitute({{symbol->key, rising == largest ? symbol->a - 1 : Expr(0)}});
    changed = true;
  }
  return changed ? std::optional(result) : std::nullopt;
}

// A quotient of such axes by a number is at most (at least) the quotient of their largest (smallest) values.
std::optional<Expr> bounded_quotients(const Expr& e, int depth) {
  Expr bound = e;
  bool changed = false;
  for (const ExprTerm& term : ExprAccess::poly(e)->terms) {
    if (term.factors.size() != 1 || term.factors[0]->kind != ExprAtom::Kind::floor_div) continue;
    const ExprAtom& quotient = *term.factors[0];
    if (!quotient.b.is_constant() || quotient.b.value() < 1) continue;
    const auto extreme = without_axes(quotient.a, term.coef < 0, depth);
    if (!extreme) continue;
    bound += Expr(term.coef) * (floor_div(*extreme, quotient.b) - floor_div(quotient.a, quotient.b));
    changed = true;
  }
  return changed ? std::optional(bound) : std::nullopt;
}

bool nonnegative(const Expr& e, int depth) {
  if (interval(e).lo >= 0) return true;
  if (e.is_constant() || !Proof::take(e)) return false;
  // An axis with a symbolic extent takes its extreme value at one of its ends, by the sign of its coefficient.
  if (depth < 8) {
    for (const auto& symbol : factor_symbols(e)) {
      if (!symbol->has_extent) continue;
      const auto coefficient = e.coefficient(symbol->key);
      if (!coefficient) continue;
      const bool rising = nonnegative(*coefficient, depth + 1);
      if (!rising && !nonnegative(-*coefficient, depth + 1)) continue;
      return nonnegative(e.substitute({{symbol->key, rising ? Expr(0) : symbol->a - 1}}), depth + 1);
    }
  }
  if (shifted_nonnegative(e)) return true;
  if (depth >= 8) return false;
  const auto bound = bounded_quotients(e, depth);
  return bound && nonnegative(*bound, depth + 1);
}

}  // namespace

ExprTooLarge::ExprTooLarge(std::size_t size)
    : CompileError(
          {.stage = "shapes",
           .wanted = fmt::format("expressions of dimensions and positions of at most {} numbers and symbols", kMostExprSize),
           .found = std::to_string(size),
           .advice = "give sizes with --dim, so that they are numbers",
           .exit_code = ExitCode::unsupported}) {}

std::int64_t Expr::lower() const { return interval(*this).lo; }
std::int64_t Expr::upper() const { return interval(*this).hi; }

bool known_nonnegative(const Expr& e) {
  if (interval(e).lo >= 0) return true;
  if (in_proof) return false;
  const Proof proof;
  try {
    return nonnegative(e, 0);
  } catch (const ExprTooLarge&) {
    return false;  // what it substitutes grows
  }
}

void set_bounds(ExprAtom& atom) {
  const Interval bounds = bounds_of(atom);
  atom.lo = bounds.lo;
  atom.hi = bounds.hi;
}

}  // namespace oclc

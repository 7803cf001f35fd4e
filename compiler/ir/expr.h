// Integer expressions over named symbols: dimensions, index maps, guards, launch sizes. An Expr is kept as a polynomial over
// atoms (symbols, floor divisions, remainders, minima, maxima), so equal expressions compare equal and `N*T*768 / 768` is
// `N*T`.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/error.h"

namespace oclc {

class Expr;
struct ExprAtom;
struct ExprPoly;

inline constexpr std::int64_t kUnbounded = INT64_MAX;

// Values of symbols by name.
using SymbolValues = std::map<std::string, std::int64_t, std::less<>>;

// Largest expression, see Expr::size; those of models have tens.
inline constexpr std::size_t kMostExprSize = 4096;

// An expression would be larger than kMostExprSize.
class ExprTooLarge : public CompileError {
 public:
  explicit ExprTooLarge(std::size_t size);
};

// Expressions by the names of the symbols that they stand for.
using Substitution = std::map<std::string, Expr, std::less<>>;

class Expr {
 public:
  Expr() = default;
  Expr(std::int64_t value) : value_(value) {}  // NOLINT: constants convert
  Expr(int value) : value_(value) {}           // NOLINT

  // A symbol with lo <= value <= hi. Two symbols of one name are the same symbol; give them the same bounds. `typical`: a value
  // to reckon costs with, see typical.h; 0: none is known.
  static Expr symbol(std::string name, std::int64_t lo = 1, std::int64_t hi = kUnbounded, std::int64_t typical = 0);
  // An axis of an iteration space: 0 <= value < extent, where extent may be symbolic.
  static Expr axis(std::string name, const Expr& extent);

  bool is_constant() const { return poly_ == nullptr; }
  std::optional<std::int64_t> constant() const;
  std::int64_t value() const;  // the constant; InternalError if it is none
  // The symbol's name if the expression is just one symbol.
  std::optional<std::string> symbol_name() const;

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  Expr operator-() const { return Expr(0) - *this; }
  Expr& operator+=(const Expr& b) { return *this = *this + b; }
  Expr& operator*=(const Expr& b) { return *this = *this * b; }
  friend bool operator==(const Expr& a, const Expr& b);
  // A total order for deterministic containers; not numeric.
  friend bool operator<(const Expr& a, const Expr& b);

  // Bounds that hold for every value of the symbols; kUnbounded / -kUnbounded where none is known.
  std::int64_t lower() const;
  std::int64_t upper() const;

  // How many numbers and symbols its text has, about: what memory and time of all that follows are in proportion to.
  std::size_t size() const;

  // Equal for equal expressions.
  std::size_t hash() const;

  // All symbols, sorted by name.
  std::vector<std::string> symbols() const;
  bool uses(std::string_view symbol) const;
  // Coefficient of `symbol` if the expression is linear in it and it stands in no division, minimum or maximum; else nothing.
  std::optional<Expr> coefficient(std::string_view symbol) const;
  // Replaces symbols by expressions, simplifying anew.
  Expr substitute(const Substitution& by) const;
  // Value under `values`; nothing if a symbol is missing, on overflow, or on division by zero.
  std::optional<std::int64_t> evaluate(const SymbolValues& values) const;

  // "2*N*T + 1", "(N + 3) / 4", "min(T, 8)": what parse_expr reads.
  std::string text() const;
  // The same as C source: `name_of` gives the C spelling of a symbol. Needs values small enough for the C type used; divisions
  // are of non-negative numbers or go through `floor_div` / `floor_mod` of the kernel prelude.
  std::string c_text(const std::function<std::string(std::string_view)>& name_of) const;
  // Reverse Polish code of runtime/package/expr_code.h; `index_of` gives a symbol's number.
  std::vector<std::int64_t> code(const std::function<std::int64_t(std::string_view)>& index_of) const;

 private:
  friend struct ExprAccess;
  std::int64_t value_ = 0;
  std::shared_ptr<const ExprPoly> poly_;  // null: the constant value_
};

// Floor division and remainder (result has the divisor's sign). InternalError if the divisor is the constant 0.
Expr floor_div(const Expr& a, const Expr& b);
Expr floor_mod(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr product(std::span<const Expr> factors);

// True if the relation holds for every value of the symbols, as far as can be shown with a limit of work; false otherwise.
bool known_nonnegative(const Expr& e);
inline bool known_less(const Expr& a, const Expr& b) { return known_nonnegative(b - a - 1); }
inline bool known_less_equal(const Expr& a, const Expr& b) { return known_nonnegative(b - a); }

// Reads what text() writes. Symbols not in `known` are made with lo = 1. Nothing on a syntax error.
std::optional<Expr> parse_expr(std::string_view text, const Substitution& known = {});

std::string text_of(std::span<const Expr> shape);  // "[N, 3, 224, 224]"

}  // namespace oclc

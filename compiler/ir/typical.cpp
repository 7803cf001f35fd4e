#include "compiler/ir/typical.h"

#include <algorithm>

#include "compiler/ir/expr_poly.h"

namespace oclc {
namespace {

constexpr std::int64_t kUnknownTerms = 512;

std::int64_t with_all(const Expr& e, std::int64_t dim) {
  SymbolValues values;
  for (const std::string& s : e.symbols()) values[s] = dim;
  return e.evaluate(values).value_or(1);
}

void add_typical_values(const Expr& e, SymbolValues& values) {
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly) return;
  for (const ExprTerm& term : poly->terms) {
    for (const auto& factor : term.factors) {
      if (factor->kind == ExprAtom::Kind::symbol) {
        values[factor->key] = factor->typical > 0 ? factor->typical : kTypicalDim;
      } else {
        add_typical_values(factor->a, values);
        add_typical_values(factor->b, values);
      }
    }
  }
}

std::int64_t at_typical_dims(const Expr& e) {
  SymbolValues values;
  add_typical_values(e, values);
  return e.evaluate(values).value_or(1);
}

}  // namespace

double typical(const Expr& e) { return static_cast<double>(at_typical_dims(e)); }

std::int64_t typical_extent(const Expr& e) { return std::max<std::int64_t>(at_typical_dims(e), 1); }

std::int64_t extent_at(const Expr& e, std::int64_t dim) { return std::max<std::int64_t>(with_all(e, dim), 1); }

std::int64_t least_extent(const Expr& e) { return extent_at(e, 1); }

std::int64_t terms_at(const Expr& e, std::int64_t dim) {
  return e.is_constant() ? e.value() : std::max(with_all(e, dim), kUnknownTerms);
}

std::int64_t typical_terms(const Expr& e) { return e.is_constant() ? e.value() : std::max(at_typical_dims(e), kUnknownTerms); }

double typical_bytes(const TensorType& type) { return typical(type.elements()) * static_cast<double>(size_bytes(type.dtype)); }

}  // namespace oclc

#include "compiler/ir/expr.h"
#include "compiler/ir/expr_poly.h"
#include "compiler/support/hash.h"

namespace oclc {

std::size_t Expr::hash() const {
  std::size_t result = hash_with(0, static_cast<std::size_t>(value_));
  if (!poly_) return result;
  for (const ExprTerm& term : poly_->terms) {
    result = hash_with(result, static_cast<std::size_t>(term.coef));
    for (const auto& factor : term.factors) result = hash_with(result, factor->hash);
  }
  return result;
}

}  // namespace oclc

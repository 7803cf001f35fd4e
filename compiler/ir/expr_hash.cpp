#include "compiler/ir/expr.h"
#include "compiler/ir/expr_poly.h"

namespace oclc {

std::size_t Expr::hash() const {
  constexpr std::size_t kMix = 0x9e3779b97f4a7c15;
  std::size_t result = static_cast<std::size_t>(value_) * kMix;
  if (!poly_) return result;
  for (const ExprTerm& term : poly_->terms) {
    result = (result ^ static_cast<std::size_t>(term.coef)) * kMix;
    for (const std::shared_ptr<const ExprAtom>& factor : term.factors) result = (result ^ factor->hash ^ result >> 29) * kMix;
  }
  return result;
}

}  // namespace oclc

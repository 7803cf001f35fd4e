#include "compiler/kernels/symbol_lines.h"

#include <fmt/format.h>

#include "compiler/ir/expr_poly.h"
#include "compiler/ir/text.h"

namespace oclc {
namespace {

std::string known_text(const ExprAtom& symbol) {
  if (symbol.has_extent) return fmt::format(" < {}", symbol.a.text());
  return bounds_text(symbol.lo, symbol.hi) + (symbol.typical != 0 ? fmt::format(" typical {}", symbol.typical) : "");
}

}  // namespace

void SymbolLines::add(const Expr& e) {
  const ExprPoly* poly = ExprAccess::poly(e);
  if (!poly) return;
  for (const ExprTerm& term : poly->terms) {
    for (const auto& factor : term.factors) {
      if (factor->kind != ExprAtom::Kind::symbol) {
        add(factor->a);
        add(factor->b);
      } else if (known_.count(factor->key) == 0) {
        known_.insert(factor->key);
        if (factor->has_extent) add(factor->a);
        text_ += fmt::format("{}{} {}{}\n", indent_, keyword_, factor->key, known_text(*factor));
      }
    }
  }
}

}  // namespace oclc

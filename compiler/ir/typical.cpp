#include "compiler/ir/typical.h"

#include <algorithm>

namespace oclc {
namespace {

constexpr std::int64_t kUnknownTerms = 512;

std::int64_t with_all(const Expr& e, std::int64_t dim) {
  SymbolValues values;
  for (const std::string& s : e.symbols()) values[s] = dim;
  return e.evaluate(values).value_or(1);
}

std::int64_t at_typical_dims(const Expr& e) { return with_all(e, kTypicalDim); }

}  // namespace

double typical(const Expr& e) { return static_cast<double>(at_typical_dims(e)); }

std::int64_t typical_extent(const Expr& e) { return std::max<std::int64_t>(at_typical_dims(e), 1); }

std::int64_t extent_at(const Expr& e, std::int64_t dim) { return std::max<std::int64_t>(with_all(e, dim), 1); }

std::int64_t least_extent(const Expr& e) { return extent_at(e, 1); }

std::int64_t terms_at(const Expr& e, std::int64_t dim) {
  return e.is_constant() ? e.value() : std::max(with_all(e, dim), kUnknownTerms);
}

std::int64_t typical_terms(const Expr& e) { return terms_at(e, kTypicalDim); }

double typical_bytes(const TensorType& type) { return typical(type.elements()) * static_cast<double>(size_bytes(type.dtype)); }

}  // namespace oclc

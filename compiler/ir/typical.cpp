#include "compiler/ir/typical.h"

#include <algorithm>

namespace oclc {
namespace {

std::int64_t at_typical_dims(const Expr& e) {
  SymbolValues values;
  for (const std::string& s : e.symbols()) values[s] = kTypicalDim;
  return e.evaluate(values).value_or(1);
}

}  // namespace

double typical(const Expr& e) { return static_cast<double>(at_typical_dims(e)); }

std::int64_t typical_extent(const Expr& e) { return std::max<std::int64_t>(at_typical_dims(e), 1); }

double typical_bytes(const TensorType& type) { return typical(type.elements()) * static_cast<double>(size_bytes(type.dtype)); }

}  // namespace oclc

// Sizes with a stand-in for unbound symbols. For choices by cost alone: what is computed must not depend on them.
#pragma once
#include <cstdint>

#include "compiler/ir/expr.h"
#include "compiler/ir/tensor.h"

namespace oclc {

// What a symbol counts as of which no likely value is known: a batch, or a sequence, that is short but not one.
inline constexpr std::int64_t kTypicalDim = 8;

// The value of `e` (elements, flops, bytes) with typical values for its symbols; 1 if it has none, e.g. on a division by zero.
double typical(const Expr& e);
// The same for the extent of an axis: at least 1.
std::int64_t typical_extent(const Expr& e);
// With 1 for its symbols: at least 1.
std::int64_t least_extent(const Expr& e);
// With `dim` for its symbols: at least 1.
std::int64_t extent_at(const Expr& e, std::int64_t dim);
// The terms of a sum: one of unknown length counts as long, since tiles and groups that suit short sums take far too long for
// those over all keys of a cache, and the other way round little longer.
std::int64_t typical_terms(const Expr& e);
std::int64_t terms_at(const Expr& e, std::int64_t dim);
double typical_bytes(const TensorType& type);

}  // namespace oclc

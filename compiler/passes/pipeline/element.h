// What an integer or boolean tensor holds at a position, as an expression: how ramps, masks and positions that a model computes
// with tensors are understood without knowing the model.
#pragma once
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

// Symbols "$0", "$1", ... for the positions along the axes of `shape`: 0 <= $i < shape[i]. An axis of size 1 is the constant 0.
std::vector<Expr> positions(const Shape& shape);
// The name of axis i among them.
std::string position_name(std::size_t axis);

// The element of the value at `index`, one expression per axis; truth values are 0 and 1. Nothing if it depends on data, or
// cannot be shown. The dtype is an integer type or bool.
std::optional<Expr> element(const Value* value, const std::vector<Expr>& index);

// e = start + step * $axis with one axis at most: how e depends on the positions.
struct Ramp {
  std::optional<std::size_t> axis;  // nothing: e depends on no position
  Expr start;
  Expr step = 0;
};
std::optional<Ramp> ramp_of(const Expr& e, std::size_t rank);

}  // namespace oclc

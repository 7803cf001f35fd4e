// Movement and indexing operators as index maps: which element of which operand an element of the result is.
#pragma once
#include <functional>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Operand `input` at `coords`, where all of `guard` are >= 0.
struct MappedElement {
  std::size_t input = 0;
  std::vector<Expr> coords;
  std::vector<Expr> guard;
};

// The sources of the result's element `coords`: the first whose guard holds, else `fill`. `integer_at(input, coords, bound)` is
// the integer element of an index operand as an expression in [0, bound), counted from the end if negative and clamped.
struct IndexMapContext {
  const Node& node;
  const std::vector<Expr>& coords;
  std::function<Expr(std::size_t input, const std::vector<Expr>& coords, const Expr& bound)> integer_at;
};

struct IndexMap {
  std::string_view op;
  std::vector<MappedElement> (*sources)(const IndexMapContext& context);
};

// One row per movement or indexing operator; null if `op` is none.
const IndexMap* find_index_map(std::string_view op);

// Coordinates in `shape` of row-major position `flat`, and back.
std::vector<Expr> unflatten(const Expr& flat, const Shape& shape);
Expr flatten(const std::vector<Expr>& coords, const Shape& shape);

// Coordinates of a broadcast operand of shape `from` for the result's `coords`.
std::vector<Expr> broadcast_coords(const std::vector<Expr>& coords, const Shape& from);

// Appends `condition` >= 0 unless it always holds.
void add_condition(std::vector<Expr>& guard, const Expr& condition);

}  // namespace oclc

#include "frontends/pt2/axes.h"

#include <algorithm>
#include <numeric>

namespace oclc::pt2 {

Ints all_axes(std::size_t rank) {
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  return perm;
}

Value* reordered(AtenContext& c, Value* x, const Ints& perm) {
  return std::is_sorted(perm.begin(), perm.end()) ? x : c.b.transpose(x, perm);
}

Value* flipped(AtenContext& c, Value* x, const Ints& axes) {
  const std::size_t rank = x->type.rank();
  if (rank == 0) return x;
  std::vector<Expr> starts(rank, Expr(0));
  Ints steps(rank, 1);
  for (const std::int64_t axis : axes) {
    starts.at(static_cast<std::size_t>(axis)) = x->type.shape[static_cast<std::size_t>(axis)] - 1;
    steps[static_cast<std::size_t>(axis)] = -1;
  }
  return c.b.slice(x, starts, x->type.shape, steps);
}

Value* window_places(AtenContext& c, const Expr& count, const Expr& size, const Expr& step) {
  return c.b.add(c.b.iota({count, Expr(1)}, 0, DType::i64, Expr(0), step), c.b.iota({Expr(1), size}, 1, DType::i64));
}

Value* diagonal_elements(AtenContext& c, Value* x, std::int64_t offset, const Expr& count) {
  const Shape& s = x->type.shape;
  const Expr rows = s[s.size() - 2], columns = s.back();
  const Expr start = offset >= 0 ? Expr(offset) : Expr(-offset) * columns;
  Shape flat(s.begin(), s.end() - 2);
  flat.push_back(rows * columns);
  const auto axis = static_cast<std::int64_t>(flat.size()) - 1;
  Value* places = c.b.iota({count}, 0, DType::i64, start, columns + 1);
  return c.b.gather(c.b.reshape(x, flat), places, axis);
}

}  // namespace oclc::pt2

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

}  // namespace oclc::pt2

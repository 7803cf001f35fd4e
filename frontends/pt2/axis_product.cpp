#include "frontends/pt2/axis_product.h"

namespace oclc::pt2 {

Value* axis_product(AtenContext& c, Value* x, std::size_t axis, HostTensor shares) {
  Ints perm;
  for (std::size_t i = 0; i < x->type.rank(); ++i)
    if (i != axis) perm.push_back(static_cast<std::int64_t>(i));
  perm.push_back(static_cast<std::int64_t>(axis));
  Value* last = c.b.transpose(x, perm);
  Value* y = c.b.matmul(last, c.b.cast(c.b.constant(std::move(shares)), x->type.dtype), false, true);
  Ints back(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return c.b.transpose(y, back);
}

}  // namespace oclc::pt2

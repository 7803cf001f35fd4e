#include "frontends/pt2/norms.h"

namespace oclc::pt2 {

Value* norms(AtenContext& c, Value* x, double p) {
  Value* d = c.b.unary("abs", x);
  const auto last = static_cast<std::int64_t>(d->type.rank()) - 1;
  const auto sum = [&](Value* v) { return c.b.reduce("reduce_sum", v, {last}, false); };
  if (p == 2) return c.b.norm_root(sum(c.b.mul(d, d)), 2);
  if (p == 1) return sum(d);
  if (p == 0) return sum(c.b.cast(c.b.call("greater", {d, c.b.scalar(d->type.dtype, 0)}), d->type.dtype));
  if (p > 1e30) return c.b.reduce("reduce_max", d, {last}, false);
  return c.b.norm_root(sum(c.b.pow(d, c.b.scalar(d->type.dtype, p))), p);
}

}  // namespace oclc::pt2

#include "runtime/session/solve_dims.h"

#include <vector>

#include "runtime/package/expr_code.h"
#include "runtime/session/expressions.h"

namespace oclc::runtime {

bool solve_dim(const plan::Expr* e, std::int64_t size, std::span<const std::int64_t> values, int& symbol, std::int64_t& value) {
  int open = -1;
  bool one = true;
  each_symbol(e, [&](int s) {
    if (values[static_cast<std::size_t>(s)] >= 0 || s == open) return;
    one = one && open < 0;
    open = s;
  });
  if (open < 0 || !one) return false;
  std::vector<std::int64_t> at(values.begin(), values.end());
  const auto with = [&](std::int64_t number) {
    at[static_cast<std::size_t>(open)] = number;
    return package::evaluate({e->code()->data(), e->code()->size()}, at);
  };
  const auto first = with(0), second = with(1);
  std::int64_t factor = 0, rest = 0;
  if (!first || !second || __builtin_sub_overflow(*second, *first, &factor) || factor == 0 ||
      __builtin_sub_overflow(size, *first, &rest))
    return false;
  // Rounded down: what does not fit does not give `size` again.
  const std::int64_t found = rest / factor;
  if (found < 0) return false;
  symbol = open;
  value = found;
  return true;
}

}  // namespace oclc::runtime

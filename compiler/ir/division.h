// Division of sizes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace oclc {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }  // of positive numbers

// The largest whole number that is no more than a / b; b > 0.
constexpr std::int64_t divide_down(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The divisors of n >= 1, ascending, in the time of the root of n. Above 2^44, of which the root is too far, those up to 2^22
// and what these leave.
inline std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d <= n / d && d <= 1 << 22; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace oclc

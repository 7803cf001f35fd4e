// Division of sizes.
#pragma once
#include <cstdint>

namespace oclc {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }  // of positive numbers

// The largest whole number that is no more than a / b; b > 0.
constexpr std::int64_t divide_down(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace oclc

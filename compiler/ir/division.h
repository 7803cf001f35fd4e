// Division of sizes.
#pragma once
#include <cstdint>

namespace oclc {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }  // of positive numbers

}  // namespace oclc

// The numbers that stand for trained weights and inputs in tests: reproducible on every machine, from a seed alone.
//
// Element i of the stream `seed` over [lo, hi) is  lo + (hi - lo) * u,  u = (z >> 40) / 2^24,
// z = mix(seed * 0x9E3779B97F4A7C15 + (i + 1) * 0xBF58476D1CE4E5B9 mod 2^64), mix = the splitmix64 finaliser
// (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). The arithmetic of lo, hi and u is
// float32, each operation rounded by itself: compile with -ffp-contract=off.
#pragma once

#include <algorithm>
#include <cstdint>

namespace oclc::fill {

// u in [0, 1): 24 random bits, exact in float32.
inline float unit(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15u + (index + 1) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<float>(static_cast<std::uint32_t>(z >> 40)) * (1.0f / 16777216.0f);
}

inline float uniform(std::uint64_t seed, std::uint64_t index, float lo, float hi) {
  const float scaled = (hi - lo) * unit(seed, index);
  return lo + scaled;
}

// An integer in [0, limit), limit >= 1.
inline std::int64_t integer(std::uint64_t seed, std::uint64_t index, std::int64_t limit) {
  const double scaled = static_cast<double>(unit(seed, index)) * static_cast<double>(limit);
  return std::min(static_cast<std::int64_t>(scaled), limit - 1);
}

}  // namespace oclc::fill

#include "compiler/ops/random.h"

#include <algorithm>
#include <cmath>

namespace oclc {

std::uint32_t random_bits(std::uint32_t index, std::uint32_t step, std::uint32_t stream) {
  constexpr std::uint64_t kFactor0 = 0xD2511F53, kFactor1 = 0xCD9E8D57;
  constexpr std::uint32_t kBump0 = 0x9E3779B9, kBump1 = 0xBB67AE85;
  std::uint32_t counter[4] = {index, step, 0, 0};
  std::uint32_t key0 = stream, key1 = 0;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = kFactor0 * counter[0], b = kFactor1 * counter[2];
    counter[0] = static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0;
    counter[1] = static_cast<std::uint32_t>(b);
    counter[2] = static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1;
    counter[3] = static_cast<std::uint32_t>(a);
    key0 += kBump0;
    key1 += kBump1;
  }
  return counter[0];
}

std::uint32_t dropout_limit(double ratio) {
  return static_cast<std::uint32_t>(std::min(std::nearbyint((1 - ratio) * 0x1p32), 0x1p32 - 1));
}

}  // namespace oclc

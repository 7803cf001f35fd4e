// Numbers of quantised models: integers of few bits times a scale.
#pragma once
#include <optional>
#include <span>

namespace oclc {

// Numbers that are all integers of [low, high] times `scale`, within the rounding of that product.
struct Multiples {
  float scale = 0;
  int low = 0, high = 0;
};

// Nothing where there are none of high - low < 2^bits. Zeros alone have the scale 0.
std::optional<Multiples> multiples_of(std::span<const float> numbers, int bits);

}  // namespace oclc

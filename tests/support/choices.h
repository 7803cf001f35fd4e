// What the contractions of a compiled schedule were given: tests ask for the Choice, not for the text that is emitted of it.
#pragma once
#include <algorithm>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc::test {

inline std::vector<Choice> choices_of(const Schedule& schedule) {
  std::vector<Choice> all;
  for (const Kernel& k : schedule.kernels) {
    if (k.contraction && k.contraction->choice) all.push_back(*k.contraction->choice);
  }
  return all;
}

inline int count_of(const Schedule& schedule, StrategyId strategy) {
  const std::vector<Choice> all = choices_of(schedule);
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Choice& c) { return c.strategy == strategy; }));
}

// Of all choices that are cut into such tiles.
template <class Tiles>
std::vector<Tiles> tiles_of(const Schedule& schedule) {
  std::vector<Tiles> all;
  for (const Choice& c : choices_of(schedule)) {
    if (const auto* tiles = std::get_if<Tiles>(&c.tiles)) all.push_back(*tiles);
  }
  return all;
}

}  // namespace oclc::test

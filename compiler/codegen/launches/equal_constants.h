// Packed constants, each kept once, however many kernels pack the same weight in the same way.
#pragma once
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

class EqualConstants {
 public:
  // The number of the buffer that holds what `buffer` does: of one that was told before, or `next`. What is no constant, or has
  // no bytes, is its own. `at` gives a buffer by its number.
  int number_of(const Buffer& buffer, int next, const std::function<const Buffer&(int)>& at);

 private:
  std::unordered_multimap<std::uint64_t, int> known_;  // numbers by a hash of both ends
};

}  // namespace oclc

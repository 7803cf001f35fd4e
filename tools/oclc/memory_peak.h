// What lies in a plan's arena when most of it is in use.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan_generated.h"
#include "runtime/package/memory.h"

namespace oclc::tool {

struct AliveBuffer {
  std::string name;
  std::uint64_t bytes = 0;  // alive of it
  std::uint64_t of = 0;     // its size
  int first = 0, last = 0;  // schedule indices
};

struct MemoryPeak {
  int step = 0;  // schedule index, see plan.fbs
  std::uint64_t bytes = 0;
  std::vector<AliveBuffer> alive;  // largest first
};

// The earliest schedule index of the entry point at which most bytes are alive. `memory` is that of the entry point.
MemoryPeak memory_peak(const plan::Plan& plan, std::uint32_t entry, const package::EntryMemory& memory);

}  // namespace oclc::tool

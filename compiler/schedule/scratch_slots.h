// Places in one piece of memory for values of which each lives for some steps of a loop.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

struct ScratchValue {
  int buffer = -1;                  // that it is in the schedule
  std::int64_t size = 0;            // floats
  std::size_t first = 0, last = 0;  // steps that use it
  std::int64_t offset = 0;          // floats
};

// Sets the offsets, largest values first, and gives the floats of all together. Sorts the values by size.
std::int64_t place_scratch(std::vector<ScratchValue>& values);

// Where the scratch of a loop's trips lies: one piece for all, or one for each of `places`, where work-groups do whole trips.
// Sets the loop's `slot` and `slots`.
struct PlacesOfTrips {
  PlacesOfTrips(LoopStep& loop, std::int64_t places, std::int64_t scratch);
  std::int64_t floats = 0;  // of all together
  Expr start = 0;           // of the trip's
};

}  // namespace oclc

#include "compiler/schedule/scratch_slots.h"

#include <algorithm>

#include "compiler/ir/division.h"

namespace oclc {
namespace {

// Floats from which on a value begins.
constexpr std::int64_t kAlignment = 32;
// Floats of a page: places of different work-groups share none.
constexpr std::int64_t kPage = 1024;

// The lowest offset that none of those before it uses at the same time.
void place(std::vector<ScratchValue>& all, std::size_t number) {
  ScratchValue& mine = all[number];
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < number; ++i) {
      const ScratchValue& other = all[i];
      const bool together = other.first <= mine.last && mine.first <= other.last;
      if (!together || other.offset + other.size <= mine.offset || mine.offset + mine.size <= other.offset) continue;
      mine.offset = (other.offset + other.size + kAlignment - 1) / kAlignment * kAlignment;
      moved = true;
    }
  }
}

}  // namespace

std::int64_t place_scratch(std::vector<ScratchValue>& values) {
  std::stable_sort(values.begin(), values.end(), [](const ScratchValue& a, const ScratchValue& b) { return a.size > b.size; });
  std::int64_t floats = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    place(values, i);
    floats = std::max(floats, values[i].offset + values[i].size);
  }
  return floats;
}

PlacesOfTrips::PlacesOfTrips(LoopStep& loop, std::int64_t places, std::int64_t scratch) : floats(scratch) {
  loop.slots = places;
  if (loop.slots == 0) return;
  loop.slot = loop.counter + "_place";
  const std::int64_t own = ceil_div(scratch, kPage) * kPage;
  floats = own * loop.slots;
  start = Expr::symbol(loop.slot, 0, loop.slots - 1) * Expr(own);
}

}  // namespace oclc

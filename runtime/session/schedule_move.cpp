// Another place for buffers of a schedule that is bound.
#include <algorithm>

#include "runtime/flat.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/schedule.h"

namespace oclc::runtime {

bool Schedule::move(std::span<const std::pair<std::size_t, Place>> moved, std::span<const std::int64_t> symbols) {
  if (uses_.empty()) {
    uses_.resize(places_.size());
    for (std::uint32_t l = 0; l < leaves_.size(); ++l)
      for (std::uint32_t s = 0; s < leaves_[l].slots.size(); ++s) {
        const Leaf::Slot& slot = leaves_[l].slots[s];
        if (!slot.looping && !is_laid_out_late(*slot.arg))
          each_buffer(*slot.arg, [&](std::uint32_t buffer, bool) { uses_[buffer].emplace_back(l, s); });
      }
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> slots;
  for (const auto& [buffer, place] : moved) {
    places_[buffer] = place;
    slots.insert(slots.end(), uses_[buffer].begin(), uses_[buffer].end());
  }
  std::sort(slots.begin(), slots.end());  // one that passes a memory object comes before those that lie in it
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  bool changed = false;
  for (const auto& [l, s] : slots)
    if (!leaves_[l].empty) changed = set_slot(leaves_[l], leaves_[l].slots[s], symbols) || changed;
  return changed;
}

}  // namespace oclc::runtime

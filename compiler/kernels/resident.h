// Resident stretches: kernels that follow one another become one launch, whose work-groups claim the tiles of one kernel after
// another. A launch costs 16 to 35 us on PoCL, a step of a resident one about 1 us.
#pragma once
#include <span>

#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// Work-groups of a resident launch: enough for every core. One that finds all tiles claimed leaves.
std::int64_t resident_groups(const Target& target);

// Ints in which a launch of `kernels` kernels counts, zeros between launches: how many groups have left, then for each kernel
// the tiles claimed and those done, each in a cache line of its own.
constexpr std::int64_t kProgressStride = 16;
constexpr std::int64_t progress_ints(std::size_t kernels) {
  return (2 * static_cast<std::int64_t>(kernels) + 1) * kProgressStride;
}

// How many of the first steps of `list` are kernels that one launch can do: as many as its arguments allow. One at most for
// devices that are no CPUs, whose kernels have groups of several work-items, and for those that count loop iterations, since
// those of all tiles would count together.
std::size_t stretch_length(const Schedule& schedule, std::span<const Step> list, const Target& target);

}  // namespace oclc

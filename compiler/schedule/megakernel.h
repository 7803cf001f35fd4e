// Megakernels: kernels that follow one another, and loops over kernels among them, become one launch, whose work-groups
// claim the tiles of one kernel after another. A launch costs 16 to 35 us on PoCL, a step of a megakernel about 1 us.
#pragma once
#include <span>

#include "compiler/schedule/pass.h"

namespace oclc {

// Work-groups of a megakernel: enough for every core. One that finds all tiles claimed leaves.
std::int64_t megakernel_groups(const Target& target);

// Arguments of a launch, of which every device takes so many bytes: a buffer is a pointer and an offset, a symbol one number.
constexpr std::size_t kMostArgumentBytes = 1024, kBufferBytes = 16, kSymbolBytes = 8;

// Ints in which a launch of `kernels` kernels counts, zeros between launches: how many groups have left, then for each kernel
// the tiles claimed and those done, each in a cache line of its own.
constexpr std::int64_t kProgressStride = 16;
constexpr std::int64_t progress_ints(std::size_t kernels) {
  return (2 * static_cast<std::int64_t>(kernels) + 1) * kProgressStride;
}

// Whether the step is a loop over kernels alone that a launch can run through: no condition ends it, and every trip has the
// same tiles.
bool megakernel_loop(const Schedule& schedule, const Step& step);

// Places for values of trips that one work-group does from beginning to end, in a loop of so many trips: as many as groups may
// run at once, or what is worth having. 0: the cores would not share the trips evenly, and share each kernel's tiles instead.
std::int64_t places_of_trips(std::int64_t trips, const Target& target);

// What a group that does a kernel's tiles alone sees of the device.
Target one_core(Target target);

// The kernels of steps, each itself, or those of a loop over kernels, or of several loops.
std::vector<const Kernel*> kernels_of(const Schedule& schedule, std::span<const Step> steps);
inline std::vector<const Kernel*> kernels_of(const Schedule& schedule, const Step& step) {
  return kernels_of(schedule, std::span(&step, 1));
}

// Constants of a launch up to this size lie one after another and are one argument: a large one that no kernel but `schedule`'s
// one reads, or a small one, of which there may be copies. Large ones with several readers are arguments of their own.
constexpr std::int64_t kMostJoinedBytes = 32 << 20, kMostCopiedBytes = 64 << 10;
bool joins_constants(const Schedule& schedule, int buffer);

// How many of the first steps of `list` one launch can do, kernels and loops over kernels: as many as its arguments and the
// target allow. On NVIDIA's Hopper several kernels without a template, each shorter than a launch. One at most for other
// devices that are no CPUs, and for those that count loop iterations, since those of all tiles would count together.
// `merges_arguments`: a loop that would pass too many has one pointer for all scratch.
std::size_t stretch_length(const Schedule& schedule, std::span<const Step> list, const Target& target,
                           bool merges_arguments = false);

// Makes a megakernel step of each such stretch of more than one step, and of each loop that a launch can run through.
void megakernel(Schedule& schedule, const ScheduleContext& context);

}  // namespace oclc

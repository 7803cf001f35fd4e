// Contractions as networks at large have them, drawn by a seed: what choices are tried on outside of the networks they were
// made for.
#pragma once
#include <cstdint>
#include <vector>

#include "compiler/tuning/search.h"

namespace oclc {

// `count` jobs, the same for the same seed on every platform: in turn grouped 3x3 convolutions of 8 to 64 channels a group,
// depthwise ones of 3x3 to 7x7, dilated, strided, 1x1 of odd sizes, batched products of run-time operands, convolutions between
// norms over channels, and grouped 1x1 convolutions behind a channel shuffle. Each has at most kSweepMultiplications
// multiply-adds, which the host reference takes part of a second for.
inline constexpr std::int64_t kSweepMultiplications = std::int64_t{1} << 25;
std::vector<TuningJob> sweep_jobs(int count, std::uint32_t seed);

// `count` jobs of all sizes: in turn one of a sweep, and one of 1x1 and 3x3 convolutions of many channels, first layers of
// pictures, products of 1 to 256 rows with constant right operand, and convolutions of pictures of one element. At most
// kCalibrationMultiplications multiply-adds each.
inline constexpr std::int64_t kCalibrationMultiplications = std::int64_t{1} << 31;
std::vector<TuningJob> calibration_jobs(int count, std::uint32_t seed);

}  // namespace oclc

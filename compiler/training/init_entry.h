// The entry `init`: a fresh start on the device.
#pragma once
#include <memory>
#include <span>

#include "compiler/ir/graph.h"

namespace oclc {

inline constexpr std::string_view kRandomSeed = "random.seed";

// No inputs, no results. Each part of "parameters" (and of "ema") is drawn anew: uniform numbers of the mean and the deviation
// of its initial values; a part of one value keeps it. Element i of part p is
//   low + floor(random_bits(i, 2^32 - 1, seed + p * 0x9E3779B9) / 256) * (high - low) / 2^24
// of the scalar state "random.seed", in single precision. "statistics" and the optimizer's state are as at first, sums of
// gradients and "random.step" are 0. Hyper-parameters, the seed and frozen parameters stay.
std::unique_ptr<Graph> init_entry(std::span<const StateVariable> states);

}  // namespace oclc

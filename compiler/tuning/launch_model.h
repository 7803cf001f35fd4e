// What kernels take from launch to end, fitted to contractions that were timed on one device.
//
// A row's seconds are those of multiply-adds and copies, by which rows are compared. A launch also starts, moves operands and
// results, and waits for terms that follow one another. For each kind of kernel its time is a sum of six parts, each times a
// factor of the device.
#pragma once
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/tuning/search.h"

namespace oclc {

// Seconds of a launch, for a second of the row's estimate, of a byte, of a term of a sum, of a floating-point operation, of a
// result.
using LaunchFactors = std::array<double, 6>;

struct TimedContraction {
  std::vector<TimedKernel> kernels;
  double seconds = 0;
};

struct FittedKind {
  LaunchFactors factors{};
  int kernels = 0;   // that it was fitted to
  double error = 0;  // median of |estimate / measured - 1| of contractions with such a kernel
};

class LaunchModel {
 public:
  // Least mean of |log(estimate / measured)|, by steps of one factor at a time; the same for the same list on every platform up
  // to rounding. `launch_seconds`, `flops` and `bytes_per_second` are where it begins.
  static LaunchModel fit(std::span<const TimedContraction> timed, const Target& target);
  // A kernel of a kind of which none was timed counts as its row's estimate.
  double seconds(std::span<const TimedKernel> kernels) const;

  std::map<std::string, FittedKind> kinds;
};

// Trials that keep a model, one a kind: their key is "cost launch KIND".
std::vector<Trial> trials_of(const LaunchModel& model);
// Of several fits of a kind the closest.
LaunchModel launch_model(const std::vector<Trial>& trials);

}  // namespace oclc

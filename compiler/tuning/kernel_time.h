// A linear cost model of kernel execution times, fitted to contractions that were timed on one device.
//
// A row's seconds cover multiply-adds and copies, by which rows are compared. An execution time also covers launch overhead,
// memory traffic and the latency of dependent terms. The model of each kind of kernel is a dot product of six features and six
// coefficients.
#pragma once
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/tuning/search.h"

namespace oclc {

// Seconds of a launch, and per second of the row's estimate, byte, term of a sum, floating-point operation and result.
using KernelTimeCoefficients = std::array<double, 6>;

struct TimedContraction {
  std::vector<TimedKernel> kernels;
  double seconds = 0;
};

struct FittedKind {
  KernelTimeCoefficients coefficients{};
  int kernels = 0;   // that it was fitted to
  double error = 0;  // median of |estimate / measured - 1| of contractions with such a kernel
};

class KernelTimeModel {
 public:
  // Minimizes the mean of |log(estimate / measured)| by coordinate descent from the target's launch_seconds, flops and
  // bytes_per_second. Deterministic up to rounding.
  static KernelTimeModel fit(std::span<const TimedContraction> timed, const Target& target);
  // A kernel whose kind was not fitted counts as its row's estimate.
  double seconds(std::span<const TimedKernel> kernels) const;

  std::map<std::string, FittedKind> kinds;
};

// Trials that keep a model, one a kind: their key is "cost kernel KIND".
std::vector<Trial> trials_of(const KernelTimeModel& model);
// Of several fits of a kind the closest.
KernelTimeModel kernel_time_model(const std::vector<Trial>& trials);

}  // namespace oclc

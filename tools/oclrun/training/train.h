// Running an entry point for many steps on batches of data.
#pragma once
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/oclrun/options.h"
#include "tools/oclrun/runner.h"
#include "tools/oclrun/training/evaluation.h"

namespace oclc::oclrun {

struct TrainResult {
  std::uint64_t steps = 0;  // done by this run
  std::uint64_t last = 0;   // number of the last since the state's initial values
  bool has_loss = false;    // the entry point has a scalar output
  double first_loss = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> means;  // of the entry point's scalar outputs, over the steps of this run
  std::vector<EvalResult> evaluations;
  std::optional<std::uint64_t> best;  // step of the lowest loss on --eval-data
  bool stopped_early = false;         // by --patience
  double samples_per_second = 0;
  double seconds = 0;
  bool interrupted = false;
};

// Sets hyper-parameters, feeds batches, runs o.steps steps, logs, saves the state every o.save_every steps and at the end.
// Stops after the step under way when `interrupted` becomes non-zero. Throws UsageError, io::FileError, rt::Error.
TrainResult train(Runner& runner, const rt::Plan& plan, const Options& o, const volatile std::sig_atomic_t& interrupted);

// "train: steps=..."
std::string summary(const TrainResult& result);

}  // namespace oclc::oclrun

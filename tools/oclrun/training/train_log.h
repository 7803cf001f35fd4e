// What is told of a training run: a file with a row per step, and a line on a terminal.
#pragma once
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace oclc::oclrun {

// Rows of numbers under column names, as CSV or as {"schema": 1, "columns": [...], "rows": [[...], ...]}; numbers that JSON has
// not (nan, inf) are null there. The file is complete after every row.
class TrainLog {
 public:
  // Nothing is written if `path` is empty. Throws io::FileError.
  TrainLog(const std::string& path, const std::vector<std::string>& columns);
  void row(std::uint64_t step, const std::vector<double>& values);

 private:
  void check();
  std::string path_;
  std::ofstream out_;
  bool json_ = false;
  bool first_ = true;
};

// "step 120/1000  loss 0.4321  812 samples/s  ETA 0:42", at most ten times a second.
class TrainProgress {
 public:
  TrainProgress(std::uint64_t steps, std::uint64_t batch, bool enabled);
  ~TrainProgress();
  TrainProgress(const TrainProgress&) = delete;
  TrainProgress& operator=(const TrainProgress&) = delete;

  void done(std::uint64_t steps, std::optional<double> loss);
  void wipe();  // for a line of its own on standard output
  // Since the first step was done, which includes the drivers' compilation.
  double samples_per_second() const;
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t steps_;
  std::uint64_t batch_;
  bool enabled_;
  bool json_;  // an object a line instead
  bool shown_ = false;
  std::uint64_t done_ = 0;
  std::uint64_t first_done_ = 0;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point first_{};
  Clock::time_point last_{};
  Clock::time_point drawn_{};
};

}  // namespace oclc::oclrun

// What ends a run before its time: somebody who asks for it, or the clock.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace oclc::runtime {

class RunLimit {
 public:
  // A run begins, which may take so many nanoseconds; 0: as long as it likes. An earlier wish to cancel is forgotten.
  void begin(std::uint64_t limit_ns);
  // From any thread.
  void cancel() { cancelled_ = true; }
  // The run has a time limit: launches are enqueued no faster than they are done, or the clock would be asked too early.
  bool timed() const { return limit_ns_ > 0; }
  // Failure(OCLC_E_CANCELLED) or Failure(OCLC_E_DEADLINE) if the run is to end before its next command.
  void check() const;
  // Failure(OCLC_E_DEADLINE) if the run, whose last command has ended, took too long.
  void check_end() const;

 private:
  std::uint64_t taken_ns() const;

  std::atomic<bool> cancelled_ = false;
  std::uint64_t limit_ns_ = 0;
  std::chrono::steady_clock::time_point begin_{};
};

}  // namespace oclc::runtime

// Units that this process and processes beside it build, each the next one when it has done its last, for drivers that build
// one at a time in a process and keep what they built on disk (Quirk::serial_builds). Without processes this one builds all.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/program/builder_process.h"
#include "runtime/program/builders.h"

namespace oclc::runtime {

class BuildQueue {
 public:
  struct Taken {
    std::uint32_t unit = 0;
    bool is_on_disk = false;  // a process built it
  };

  // Jobs in the order in which they shall begin; `tell` hears, from another thread, that a process failed; once.
  BuildQueue(const Device& device, std::vector<BuildJob> jobs, unsigned processes, Builders::Tell tell);
  ~BuildQueue();  // ends the processes
  BuildQueue(const BuildQueue&) = delete;
  BuildQueue& operator=(const BuildQueue&) = delete;

  // Starts the processes, once. Thread-safe, as what follows.
  void start();
  // What to build here next: a unit that a process has built, which takes milliseconds, else one that nobody has begun. Waits
  // for those that processes are at. Nothing: each unit was returned once.
  std::optional<Taken> next();

 private:
  struct Process {
    BuilderProcess runs;
    bool was_asked_to_open = false, is_open = false;
    std::optional<std::size_t> job;  // it is at
  };

  void feed();
  bool is_over();
  void open_some();
  void give_work();
  void take_replies();
  void lost(Process& process);
  void end(Process& process);

  const Device device_;
  const std::vector<BuildJob> jobs_;
  const Builders::Tell tell_;
  std::vector<Process> processes_;  // of the thread that feeds them
  bool told_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> waiting_;  // jobs that nobody has begun
  std::deque<std::uint32_t> built_;  // units that processes built
  std::size_t begun_ = 0;            // jobs that processes are at
  bool stops_ = false;
  std::thread feeder_;
};

}  // namespace oclc::runtime

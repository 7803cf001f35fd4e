// Processes that compile a plan's programs beside this one, for drivers that compile one at a time in a process and keep what
// they compiled on disk (Quirk::compiles_on_one_core, Quirk::serial_builds). What they give is never needed: without them the
// driver compiles it here.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/program/builder_process.h"

namespace oclc::runtime {

// A program that a process builds alone.
struct BuildJob {
  std::uint32_t unit = 0;  // of the plan's, see program_builder.h
  std::string options;
  std::string source;
  std::uint32_t process = 0;  // of theirs
  bool lifted = false;        // to sm_90a, see runtime/device/sm90a.h

  std::uint32_t kind() const { return lifted ? BuilderRequest::kLifted : BuilderRequest::kProgram; }
};

inline constexpr const char* kBuilderEnded =
    "a process that compiled kernels beside this one has ended; what is left of its work is done in this one";

class Builders {
 public:
  using Tell = std::function<void(const std::string&)>;
  using Pace = BuilderProcess::Pace;

  // What drivers leave to the first run of a kernel, or nothing.
  enum class Work { programs_and_kernels, programs };

  // `tell` hears, from any thread, that a process failed; once.
  // As many processes as the jobs name. They end with it, unless they work behind.
  Builders(const Device& device, std::vector<BuildJob> jobs, Work work, Pace pace, Tell tell);
  Builders(const Builders&) = delete;
  Builders& operator=(const Builders&) = delete;

  // Starts the processes, and has each build its programs. Thread-safe, as what follows.
  void start();
  // Whether they compile kernels of the unit.
  bool builds(std::uint32_t unit) const;
  // Asks for a kernel of a unit of theirs, unless it was asked for before; where they build whole programs, for the unit.
  // Processes that have ended are started anew.
  void want(std::uint32_t unit, const std::string& kernel);
  // Waits until a unit is built, or a wanted kernel compiled, or its process has ended. `look` is called now and then while it
  // waits, and may throw.
  using Look = std::function<void()>;
  void wait_for_unit(std::uint32_t unit, const Look& look);
  void wait_for_kernel(std::uint32_t unit, const std::string& kernel, const Look& look);
  // Whether there is nothing to wait for.
  bool is_done(std::uint32_t unit, const std::string& kernel);
  // Kernels that were asked for, and those of them that are compiled.
  std::pair<std::uint32_t, std::uint32_t> asked_and_done() const;
  // Ends the processes until one is wanted again, unless somebody still waits for one.
  void rest();

 private:
  struct Process {
    BuilderProcess runs;
    std::vector<std::uint32_t> units;                               // it builds
    std::vector<std::pair<std::uint32_t, std::string>> unanswered;  // requests; a unit's has no kernel
  };

  void start_locked();
  void start_one(Process& process);
  bool ask(Process& process, std::uint32_t kind, std::uint32_t unit, const std::string& first, const std::string& second);
  bool take_reply(Process& process, int timeout_ms);
  void wait(std::uint32_t unit, const std::string& kernel, const Look& look);
  std::string asked_for(const std::string& kernel) const { return work_ == Work::programs ? "" : kernel; }
  Process* process_of(std::uint32_t unit);
  void lost(Process& process);

  const Device device_;
  const std::vector<BuildJob> jobs_;
  const Work work_;
  const Pace pace_;
  const Tell tell_;
  mutable std::mutex mutex_;
  std::vector<Process> processes_;
  std::set<std::pair<std::uint32_t, std::string>> wanted_, done_;
  bool told_ = false;
};

}  // namespace oclc::runtime

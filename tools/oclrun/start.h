// Where a start goes: from the process's first line to the first results.
#pragma once
#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "oclc/oclc.hpp"
#include "tools/oclrun/options.h"
#include "tools/oclrun/runner.h"

namespace oclc::oclrun {

class StartClock {
 public:
  StartClock();
  // The time since the last mark, or since the clock was made, was spent on `what`.
  void mark(const std::string& what);

  struct Span {
    std::string what;
    double ms = 0;
    double processor_ms = 0;  // of all threads, and of processes that have ended
  };
  const std::vector<Span>& spans() const { return spans_; }
  double ms_of(const std::string& what) const;  // 0 for what was not marked

 private:
  std::vector<Span> spans_;
  std::chrono::steady_clock::time_point last_;
  double last_processor_ms_ = 0;
};

// The marks that the texts below tell of. Drivers that compile a kernel when it first runs do so in the first run: what it
// takes beyond the second is that.
inline constexpr const char *kPlanMark = "plan", *kContextMark = "context", *kSessionMark = "session",
                            *kFirstRunMark = "first run", *kSecondRunMark = "second run",
                            *kOptimizedMark = "runs until the optimized kernels are compiled", *kSteadyRunMark = "steady run";

// Runs a second time; where the session began with unoptimized kernels also until it has the optimized ones, and once
// more.
void run_until_optimized(Runner& runner, StartClock& clock);

// How the session's programs were made: "1 built, 0 from the cache", and from the plan's own binaries where some were. `cache`:
// what to call the cache.
std::string programs_text(rt::Session& session, const char* cache);
std::string start_table(const StartClock& clock, rt::Session& session, const std::string& device);
nlohmann::json start_json(const StartClock& clock, rt::Session& session);

// Runs every entry point once, or `options.entry` alone, on inputs made up, so that the driver has compiled all kernels.
// Dimensions that `options` do not give take the least value that the plan allows. Returns what was done, in words.
std::string warm(const rt::Plan& plan, const rt::Context& context, const Options& options);

}  // namespace oclc::oclrun

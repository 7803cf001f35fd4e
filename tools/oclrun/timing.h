// Latencies, the profile per launch, the trace.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/oclrun/options.h"
#include "tools/oclrun/runner.h"

namespace oclc::oclrun {

// Wall-clock times of single blocking runs, in milliseconds.
struct Latencies {
  std::vector<double> sorted;
  double median() const { return percentile(50); }
  double percentile(double p) const;  // linear between neighbours
  double mean() const;
};

// --warmup, then --runs or --time (default: one run, or ten with --warmup or --percentiles).
Latencies time_runs(Runner& runner, const Options& options);

// One launch of the schedule, averaged over the profiled runs.
struct ProfileRow {
  std::string kernel;
  std::string anchor;
  std::string nodes;
  double us = 0;     // per run
  double calls = 0;  // per run
  double flops = 0;  // per run
  double bytes = 0;  // per run
};

struct Profile {
  std::vector<ProfileRow> rows;  // slowest first
  double total_us() const;
  int runs = 0;
};

// Profiles a few runs; with `trace`, writes the last one there as Chrome JSON.
Profile profile_runs(Runner& runner, int runs, const std::string& trace);

std::string profile_table(const Profile& profile);
std::string profile_csv(const Profile& profile);
nlohmann::json profile_json(const Profile& profile);
nlohmann::json latency_json(const Latencies& latencies, const std::vector<double>& percentiles);

// "latency_ms median=... min=... p90=... p99=... runs=...".
std::string latency_line(const Latencies& latencies, const std::vector<double>& percentiles);

}  // namespace oclc::oclrun

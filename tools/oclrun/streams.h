// Throughput: runs of several sessions at once, and of several sizes one after another.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/oclrun/options.h"
#include "tools/oclrun/timing.h"

namespace oclc::oclrun {

// What so many sessions did together, each with a queue of its own.
struct Throughput {
  int streams = 1;
  std::string size;     // "N=8" of a sweep, else ""
  std::int64_t of = 1;  // its value
  double seconds = 0;   // from the first run's begin to the last one's end
  Latencies latencies;  // of single runs, of all streams
  double scaling = 1;   // runs a second beside those of one stream of the same size

  double runs_per_s() const { return static_cast<double>(latencies.sorted.size()) / seconds; }
};

// For each size of --batch-sweep: one stream, then --streams, each for --time seconds (2) or --runs runs a stream, behind a
// first run that is not counted. `make_context` makes the contexts, one a stream.
std::vector<Throughput> measure_streams(const rt::Plan& plan, const Options& options,
                                        const std::function<rt::Context()>& make_context);

std::string streams_table(const std::vector<Throughput>& rows);
nlohmann::json streams_json(const std::vector<Throughput>& rows);

}  // namespace oclc::oclrun

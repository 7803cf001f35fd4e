// The command line of oclrun.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace oclc::oclrun {

// A user's mistake on the command line: exit code 2.
struct UsageError {
  std::string message;
};

// Values of a file that an input takes as value * factor + offset.
struct Scale {
  double factor = 1, offset = 0;
};

struct Options {
  std::string plan;
  std::string entry;  // "": predict, else the only one
  std::string device;
  std::vector<std::pair<std::string, std::int64_t>> dims;
  std::vector<std::pair<std::string, std::string>> inputs;  // name, file
  std::string inputs_dir;
  std::optional<std::uint64_t> random;  // seed
  std::vector<std::pair<std::string, std::string>> outputs;
  std::optional<int> print;  // top k; 0: first elements
  std::string verify_dir;
  int verify_case = -1;
  std::optional<double> atol;
  std::optional<double> rtol;
  int warmup = -1;  // -1: not given
  int runs = -1;
  double seconds = 0;
  std::vector<double> percentiles;
  std::string profile;  // "", table, json, csv
  std::string trace;
  std::string save_state;
  std::string load_state;
  bool check_nan = false;
  std::uint64_t memory_limit = 0;    // bytes; 0: the device's
  std::uint64_t max_host_steps = 0;  // 0: the runtime's
  bool explain_start = false;
  bool warm = false, use_binaries = false, any_device = false;
  std::string write_binaries;
  bool wait_for_optimized = false;
  int streams = 0;                  // 0: no throughput is measured
  std::string sweep_dim;            // of --batch-sweep
  std::vector<std::int64_t> sweep;  // its sizes
  // Training.
  std::int64_t steps = -1;                                    // -1: no training
  std::vector<std::pair<std::string, std::string>> data;      // name, file
  std::vector<std::pair<std::string, std::string>> settings;  // name, rule
  std::int64_t batch = -1;
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::int64_t save_every = 0;
  std::vector<std::pair<std::string, Scale>> scales;           // of --data and --eval-data
  std::vector<std::pair<std::string, std::string>> eval_data;  // name, file
  std::int64_t eval_every = 0;                                 // 0: at the end
  std::string save_best;
  std::int64_t patience = 0;  // evaluations without a better loss that end the run; 0: none do
  std::string log;
  std::string state_to_onnx;
  std::string model;  // that the plan came from
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

// Is throughput measured: --streams or --batch-sweep.
bool measures_streams(const Options& options);
// The scale of an input's data, if it has one.
std::optional<Scale> scale_of(const Options& options, const std::string& input);
// What is timed or verified, and what runs many steps, wants the optimized kernels.
bool waits_for_optimized(const Options& options);

// Empty: the command line asked for help or the version, which have been printed. Throws UsageError.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace oclc::oclrun

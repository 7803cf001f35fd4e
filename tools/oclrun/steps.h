// Plans whose state feeds itself (oclc --carry): its first value, its value at the end, and many consecutive steps.
#pragma once
#include <string>
#include <vector>

#include "tools/oclrun/options.h"
#include "tools/oclrun/runner.h"

namespace oclc::oclrun {

// Names of the inputs that an output feeds, in the plan's order.
std::vector<std::string> carried_names(const rt::Plan& plan);
// Gives inputs that an output feeds the first value that --input names. Throws UsageError for a name that is no input at all,
// io::FileError where the file's tensor does not fit.
void set_first_values(Runner& runner, const Options& options);
// UsageError for a name of --output that is neither an output nor an input that an output feeds.
void check_output_names(const Runner& runner, const Options& options);
// Writes what --output asks for: `results`, and the state as it is.
void write_outputs(Runner& runner, const std::vector<io::Tensor>& results, const Options& options);

struct Steps {
  std::uint64_t steps = 0;
  double seconds = 0;
  double us_per_step = 0;           // of those behind the first, in which drivers compile
  std::vector<io::Tensor> outputs;  // those asked for, [steps, ...]
};

// Runs the entry point --steps times. An input of one dimension more than the plan's has a value for each step, others are the
// same in all. Throws UsageError, io::FileError, rt::Error.
Steps run_steps(Runner& runner, const Options& options);

// "steps: steps=..."
std::string summary(const Steps& steps);

}  // namespace oclc::oclrun

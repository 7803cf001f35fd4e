// Comparing a plan's results with references.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/oclrun/options.h"
#include "tools/oclrun/runner.h"

namespace oclc::oclrun {

// Of one output or the worst of several.
struct Difference {
  double max_abs = 0;  // max |y - ref|; infinite where one is NaN and the other is not, or infinities differ
  double max_rel = 0;  // max_abs / max |ref|
};

struct OutputVerdict {
  std::string set;  // the case's dims, or the folder of the test_data_set
  std::string output;
  Difference difference;
  bool passed = false;
};

struct Verdict {
  std::vector<OutputVerdict> outputs;
  Difference worst;
  double atol = 0;
  double rtol = 0;
  bool passed = true;
};

// Compares `y[i * stride]` with `reference[i]`; `scale` is max |ref| over the whole tensor, or 0 to take it from `reference`.
Difference compare(const io::Tensor& y, const io::Tensor& reference, std::uint64_t stride, double scale);

// Runs what `folder` holds: cases.json (every case that fits the plan and `options`), or test_data_set files in it or in its
// folders test_data_set_*. An output passes when max_abs <= atol + rtol * max |ref|. The rtol without --rtol is 5e-6, for
// cases.json that of the plan's precision (fast: 2e-5, the 16-bit ones 5e-2), for test_data_set 1e-3 with atol 1e-7, as ONNX
// does.
Verdict verify(Runner& runner, const rt::Plan& plan, const Options& options);

nlohmann::json verdict_json(const Verdict& verdict);
// "verify: PASS max_abs=... max_rel=... (atol=... rtol=...)".
std::string summary(const Verdict& verdict);

}  // namespace oclc::oclrun

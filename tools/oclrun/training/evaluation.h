// Looking at held-out data between the steps of a training run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/oclrun/options.h"
#include "tools/oclrun/runner.h"
#include "tools/oclrun/training/batches.h"

namespace oclc::oclrun {

struct EvalResult {
  std::uint64_t step = 0;
  double loss = 0;                 // mean over the samples
  std::optional<double> accuracy;  // percent of the labels; where the entry point counts right ones
};

// "eval: step=100 loss=0.123 accuracy=97.5 %".
std::string eval_line(const EvalResult& result);

// The entry point eval_step over all samples of --eval-data, a batch after another; where the plan fixes the batch, samples
// that fill no batch are left out.
class Evaluation {
 public:
  // Throws UsageError if the plan has no entry point eval_step or an input has no data; io::FileError.
  Evaluation(Runner& runner, const rt::Plan& plan, const Options& options, std::int64_t batch);
  EvalResult run(std::uint64_t step);

 private:
  void bind(const io::Tensor& tensor, std::int64_t rows);

  Runner& runner_;
  std::uint32_t entry_ = 0;
  bool counts_ = false;  // has an output `correct`
  bool fixed_ = false;   // the batch
  std::int64_t batch_ = 0;
  Batches batches_;
  std::vector<io::Tensor> buffers_;  // a batch of each input
};

}  // namespace oclc::oclrun

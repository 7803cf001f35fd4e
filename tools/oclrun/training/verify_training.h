// Comparing six training steps with a reference run.
#pragma once
#include "tools/oclrun/verify.h"

namespace oclc::oclrun {

// Runs the training entry on the batches that FOLDER/train.json describes and compares with what it holds:
//   the loss of each step           within 10 times the deviation of PyTorch in single precision, at least 2e-5
//   the norms of the first gradient within 4 times PyTorch's worst, at least 1e-5
//   the norms of each change        after the last step, the same, at least 1e-4
// The gradients are read from the optimizer's first moments after one step (sgd with momentum, adam and adamw). Deviations are
// relative. Throws io::FileError if the file is not as expected, rt::Error if a run fails.
Verdict verify_training(Runner& runner, const rt::Plan& plan, const std::string& folder);

}  // namespace oclc::oclrun

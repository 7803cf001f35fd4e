// Test programs whose subject is the text of kernels let PoCL compile them without optimisation, in half the time, unless
// OCLC_TEST_ALL is set. Models, examples, ONNX's tests, fuzz and what runs the programs see optimised kernels always.
#include <cstdlib>

namespace {

[[maybe_unused]] const int kPlainKernels =
    std::getenv("OCLC_TEST_ALL") != nullptr ? 0 : setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);

}  // namespace

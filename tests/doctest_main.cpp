#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>

namespace {

// Tests see the kernels that stay: no process compiles behind them what nobody runs any more.
[[maybe_unused]] const int kWaits = setenv("OCLC_WAIT_FOR_OPTIMIZED", "1", 0);

}  // namespace

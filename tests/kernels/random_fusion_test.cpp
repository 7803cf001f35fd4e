// Random graphs on the device: one kernel an operator and fused kernels both compute what the reference does.
#include <doctest/doctest.h>

#include "compiler/ir/copy.h"
#include "compiler/ir/text.h"
#include "tests/support/random_case.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

struct Attempt {
  std::size_t launches = 0;
  std::string problem;  // empty: the plan's results are the reference's
};

Attempt attempt(const RandomCase& test, bool fuse) {
  CompileOptions options = default_options();
  if (!fuse) options.disabled = {"fuse"};
  try {
    PlanRunner runner(module_of(copy_graph(*test.graph)), options);
    return {runner.compiled().schedule.kernels.size(), test.problem(runner.run(test.inputs, test.symbols))};
  } catch (const std::exception& error) {
    return {0, error.what()};
  }
}

void check_seeds(const RandomGraphOptions& options) {
  std::size_t fused_launches = 0, unfused_launches = 0, tested = 0;
  for (const std::uint64_t seed : random_seeds(12)) {
    const auto test = random_case(seed, options);
    if (!test) continue;
    const Attempt unfused = attempt(*test, false), fused = attempt(*test, true);
    const std::string where = "seed " + std::to_string(seed) + "\n" + print_graph(*test->graph, {.max_elements = 1 << 20});
    CHECK_MESSAGE(unfused.problem == "", "unfused, ", where);
    CHECK_MESSAGE(fused.problem == "", "fused, ", where);
    unfused_launches += unfused.launches;
    fused_launches += fused.launches;
    ++tested;
  }
  CHECK(tested > 0);
  CHECK(fused_launches < unfused_launches);
}

}  // namespace

TEST_CASE("random graphs of numeric dimensions give the reference's numbers, fused or not") {
  check_seeds({.nodes = 10, .symbolic = false});
}

TEST_CASE("random graphs of symbolic dimensions give the reference's numbers, fused or not") { check_seeds({.nodes = 10}); }

// Each optimization switched off, and off alone: random graphs give the reference's numbers.
#include <doctest/doctest.h>

#include <set>

#include "compiler/ir/copy.h"
#include "compiler/ir/text.h"
#include "compiler/passes/graph_passes.h"
#include "compiler/schedule_passes.h"
#include "tests/support/random_case.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace disabled_passes_test {
namespace {

// Of --disable.
std::set<std::string> pass_names() {
  std::set<std::string> names = {"fuse", "megakernel", "merge_arguments"};
  for (const PassRow& pass : pipeline()) names.emplace(pass.name);
  for (const GraphPass& pass : graph_passes()) names.emplace(pass.name);
  for (const SchedulePass& pass : schedule_passes()) names.emplace(pass.name);
  names.erase("pipeline");
  return names;
}

}  // namespace

TEST_CASE("case 114: random graphs give the reference's numbers with any one pass switched off") {
  // Those without which a graph has no kernels are named by an error, never by other numbers.
  std::uint64_t seed = random_seeds(1).front();
  int ran = 0;
  for (const std::string& pass : pass_names()) {
    std::optional<RandomCase> test;
    while (!test) test = random_case(seed++, {.nodes = 9});
    CompileOptions options = default_options();
    options.disabled = {pass};
    const std::string where = "without " + pass + ", seed " + std::to_string(test->seed) + "\n" +
                              print_graph(*test->graph, {.max_elements = 1 << 20});
    std::string problem;
    try {
      PlanRunner runner(module_of(copy_graph(*test->graph)), options);
      problem = test->problem(runner.run(test->inputs, test->symbols));
      ++ran;
    } catch (const CompileError& error) {
      problem = error.what();
    }
    CHECK_MESSAGE(problem == "", where);
  }
  CHECK(ran > 30);
}

}  // namespace disabled_passes_test

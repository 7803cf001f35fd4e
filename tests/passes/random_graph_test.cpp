#include <doctest/doctest.h>

#include "compiler/ir/copy.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/passes/pipeline/pass.h"
#include "tests/support/random_case.h"

using namespace oclc;

namespace {

constexpr TextOptions kAll{.max_elements = 1 << 20};

// What is wrong with `changed` as a rewrite of the case's graph, or an empty string.
std::string problem_of(const RandomCase& test, const Graph& changed) {
  const std::string malformed = verify(changed);
  return malformed.empty() ? test.problem(evaluate(changed, test.inputs, test.symbols)) : malformed;
}

}  // namespace

TEST_CASE("random graphs keep their results and every pass is idempotent") {
  int changes = 0;
  std::size_t skipped = 0;
  const auto seeds = random_seeds(300);
  for (const std::uint64_t seed : seeds) {
    const auto made = random_case(seed);
    if (!made) {
      ++skipped;
      continue;
    }
    const RandomCase& test = *made;
    const std::string before = print_graph(*test.graph, kAll);
    REQUIRE_MESSAGE(verify(*test.graph) == "", "seed ", seed);
    CHECK_MESSAGE(print_graph(*parse_graph(before, find_op), kAll) == before, "seed ", seed);
    for (const PassRow& pass : pipeline()) {
      const auto graph = copy_graph(*test.graph);
      const bool changed = pass.function(*graph, {});
      changes += changed ? 1 : 0;
      const std::string after = print_graph(*graph, kAll), problem = problem_of(test, *graph);
      REQUIRE_MESSAGE(problem == "", "seed ", seed, ", pass ", std::string(pass.name), "\n", before, "\nbecame\n", after);
      REQUIRE_MESSAGE((changed || after == before), "seed ", seed, ", pass ", std::string(pass.name),
                      " changed the graph but denies it\n", before, after);
      REQUIRE_MESSAGE(!pass.function(*graph, {}), "seed ", seed, ", pass ", std::string(pass.name), " is not idempotent\n",
                      before, after, print_graph(*graph, kAll));
    }
    const auto graph = copy_graph(*test.graph);
    PassContext context;
    context.verify_each = true;
    run_passes(*graph, context);
    const std::string after = print_graph(*graph, kAll), problem = problem_of(test, *graph);
    REQUIRE_MESSAGE(problem == "", "seed ", seed, ", all passes\n", before, "\nbecame\n", after);
    REQUIRE_MESSAGE(!run_passes(*graph, context), "seed ", seed, ": the pipeline is not idempotent\n", after,
                    print_graph(*graph, kAll));
    CHECK_MESSAGE(print_graph(*parse_graph(after, find_op), kAll) == after, "seed ", seed);
  }
  CHECK(changes > static_cast<int>(seeds.size()));
  CHECK(skipped <= seeds.size() / 20);
}

TEST_CASE("one seed gives one graph") {
  CHECK(print_graph(*random_graph(7), kAll) == print_graph(*random_graph(7), kAll));
  CHECK(print_graph(*random_graph(7), kAll) != print_graph(*random_graph(8), kAll));
}

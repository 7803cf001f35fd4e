#include "tests/support/random_graph.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "compiler/ir/copy.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/evaluate.h"
#include "compiler/ops/op_list.h"
#include "compiler/passes/pass.h"
#include "compiler/support/error.h"
#include "tests/support/graph_check.h"

using namespace oclc;

namespace {

constexpr TextOptions kAll{.max_elements = 1 << 20};

std::uint64_t graph_count() {
  const char* text = std::getenv("OCLC_RANDOM_GRAPHS");
  return text ? std::strtoull(text, nullptr, 10) : 300;
}

std::uint64_t first_seed() {
  const char* text = std::getenv("OCLC_RANDOM_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

// The largest finite magnitude among all floats that the graph computes: rounding errors are relative to it.
double largest_magnitude(const Graph& graph, const std::vector<HostTensor>& inputs, const SymbolValues& symbols) {
  const auto copy = copy_graph(graph);
  int count = 0;
  for (const Node* node : copy->nodes()) {
    for (const auto& output : node->outputs) copy->add_output(fmt::format("all{}", count++), output.get());
  }
  double largest = 1;
  for (const HostTensor& tensor : evaluate(*copy, inputs, symbols)) {
    for (std::int64_t i = 0; is_float(tensor.dtype()) && i < tensor.elements(); ++i) {
      if (std::isfinite(tensor.at(i))) largest = std::max(largest, std::fabs(tensor.at(i)));
    }
  }
  return largest;
}

// As `difference`, but floats within an absolute tolerance.
std::string absolute_difference(const std::vector<HostTensor>& found, const std::vector<HostTensor>& wanted, double tolerance) {
  for (std::size_t t = 0; t < wanted.size(); ++t) {
    double largest = 1e-300;
    for (std::int64_t i = 0; i < wanted[t].elements(); ++i) {
      if (std::isfinite(wanted[t].at(i))) largest = std::max(largest, std::fabs(wanted[t].at(i)));
    }
    const std::string problem = difference({found[t]}, {wanted[t]}, tolerance / largest);
    if (!problem.empty()) return fmt::format("output {}: {}", t, problem);
  }
  return {};
}

struct Case {
  std::uint64_t seed;
  std::unique_ptr<Graph> graph;
  SymbolValues symbols;
  std::vector<HostTensor> inputs, wanted;
  double tolerance;

  explicit Case(std::uint64_t s) : seed(s), graph(random_graph(s)) {
    symbols = {{"N", 1 + static_cast<std::int64_t>(s % 3)}, {"T", 1 + static_cast<std::int64_t>(s % 5)}};
    inputs = random_inputs(*graph, symbols, s);
    wanted = evaluate(*graph, inputs, symbols);
    tolerance = 1e-4 * largest_magnitude(*graph, inputs, symbols);
  }

  // What is wrong with `changed` as a rewrite of the graph, or an empty string.
  std::string problem_of(const Graph& changed) const {
    const std::string malformed = verify(changed);
    return malformed.empty() ? absolute_difference(evaluate(changed, inputs, symbols), wanted, tolerance) : malformed;
  }
};

// Nothing if the graph cannot run with these sizes: a window larger than a symbolic dimension's value, say.
std::optional<Case> make_case(std::uint64_t seed) {
  try {
    return Case(seed);
  } catch (const CompileError&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("random graphs keep their results and every pass is idempotent") {
  int changes = 0;
  std::uint64_t skipped = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + graph_count(); ++seed) {
    const auto made = make_case(seed);
    if (!made) {
      ++skipped;
      continue;
    }
    const Case& test = *made;
    const std::string before = print_graph(*test.graph, kAll);
    REQUIRE_MESSAGE(verify(*test.graph) == "", "seed ", seed);
    CHECK_MESSAGE(print_graph(*parse_graph(before, find_op), kAll) == before, "seed ", seed);
    for (const PassRow& pass : pipeline()) {
      const auto graph = copy_graph(*test.graph);
      const bool changed = pass.function(*graph, {});
      changes += changed ? 1 : 0;
      const std::string after = print_graph(*graph, kAll), problem = test.problem_of(*graph);
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
    const std::string after = print_graph(*graph, kAll), problem = test.problem_of(*graph);
    REQUIRE_MESSAGE(problem == "", "seed ", seed, ", all passes\n", before, "\nbecame\n", after);
    REQUIRE_MESSAGE(!run_passes(*graph, context), "seed ", seed, ": the pipeline is not idempotent\n", after,
                    print_graph(*graph, kAll));
    CHECK_MESSAGE(print_graph(*parse_graph(after, find_op), kAll) == after, "seed ", seed);
  }
  CHECK(changes > static_cast<int>(graph_count()));
  CHECK(skipped <= graph_count() / 20);
}

TEST_CASE("one seed gives one graph") {
  CHECK(print_graph(*random_graph(7), kAll) == print_graph(*random_graph(7), kAll));
  CHECK(print_graph(*random_graph(7), kAll) != print_graph(*random_graph(8), kAll));
}

// Gradients of every operator, computed by kernels, beside those of the reference in double.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/training/training.h"
#include "tests/support/gradient_cases.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("gradients of every operator on a device are those of the reference") {
  const std::vector<GradientCase> cases = gradient_cases();
  // Many operators are one plan: what costs is to build kernels, and many build faster together.
  constexpr std::size_t kCasesPerPlan = 48;
  GradientTable table;
  for (std::size_t first = 0; first < cases.size(); first += kCasesPerPlan) {
    const std::size_t end = std::min(cases.size(), first + kCasesPerPlan);
    auto graph = std::make_unique<Graph>();
    std::vector<HostTensor> inputs;
    std::vector<std::size_t> gradients;  // of each case
    for (std::size_t i = first; i < end; ++i) {
      const std::vector<HostTensor> operands = cases[i].operands();
      const DifferentiatedCase made = differentiate(*graph, cases[i], operands, DType::f32);
      for (Value* gradient : made.gradients) graph->add_output(fmt::format("d{}", graph->outputs().size()), gradient);
      for (const std::size_t v : made.variables) inputs.push_back(as_floats(operands[v], DType::f32));
      gradients.push_back(made.gradients.size());
    }
    graph->erase_dead();
    expand_training_layers(*graph);
    PlanRunner runner(module_of(std::move(graph)), default_options());
    const std::vector<HostTensor> found = runner.run(inputs);
    for (std::size_t i = first, at = 0; i < end; ++i) {
      CAPTURE(cases[i].op);
      CAPTURE(cases[i].text());
      const std::vector<HostTensor> wanted = reference_gradients(cases[i]).gradients;
      for (std::size_t v = 0; v < gradients[i - first]; ++v, ++at) {
        const double deviation = gradient_deviation(found[at], wanted[v]);
        table.add(cases[i], "device fp32", deviation);
        CHECK(deviation <= 1e-3);
      }
    }
  }
  fmt::print("{}", table.text());
}

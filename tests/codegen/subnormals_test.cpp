// Numbers below the smallest normal one.
#include "oclc/oclc.hpp"
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

HostTensor halves_of(std::vector<float> numbers, bool flushes) {
  HostTensor x(DType::f32, {static_cast<std::int64_t>(numbers.size())});
  for (std::size_t i = 0; i < numbers.size(); ++i) x.set(static_cast<std::int64_t>(i), numbers[i]);
  auto graph = std::make_unique<Graph>();
  Builder b(*graph);
  graph->add_output("y", b.mul(graph->add_input("x", {DType::f32, {Expr(static_cast<std::int64_t>(numbers.size()))}}),
                               b.scalar(DType::f32, 0.5)));
  CompileOptions options = default_options();
  options.flushes_subnormals = flushes;
  PlanRunner runner(module_of(std::move(graph)), options);
  return runner.run(std::vector<HostTensor>{x})[0];
}

}  // namespace

TEST_CASE("numbers below the smallest normal one are kept, or are 0 on a CPU where the plan may flush them") {
  const std::vector<float> numbers = {1.5e-38f, 2e-40f, 4e-38f, 1};
  const HostTensor kept = halves_of(numbers, false);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    CHECK(static_cast<float>(kept.at(static_cast<std::int64_t>(i))) == numbers[i] * 0.5f);
  const HostTensor flushed = halves_of(numbers, true);
  CHECK(static_cast<float>(flushed.at(2)) == 2e-38f);
  CHECK(flushed.at(3) == 0.5);
  if (!default_options().target.items_are_cores()) return;
  CHECK(flushed.at(0) == 0);
  CHECK(flushed.at(1) == 0);
}

}  // namespace oclc::test

// Convolutions of few channels from a window of the image, whose weights are given at run time.
#include "tests/codegen/plan_check.h"
#include "tests/support/choices.h"

using namespace oclc;
using namespace oclc::test;

namespace {

int windows(const PlanCheck& check, const std::string& target) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  return count_of(compile(module_of(copy_graph(*check.graph)), options).schedule, StrategyId::window);
}

}  // namespace

TEST_CASE("weights of run time are read where they lie, if panels divide the features") {
  PlanCheck check;
  const auto layer = [&](const std::string& name, const Ints& x, const Ints& w, const ConvOptions& options) {
    check.out(name, check.b.relu(check.b.conv(check.input(x), check.input(w), nullptr, options)));
  };
  layer("a first layer", {2, 3, 30, 27}, {64, 3, 7, 7}, {.strides = {2, 2}, .pads = {3, 3, 3, 3}});
  layer("uneven margins, dilation", {1, 5, 21, 19}, {32, 5, 2, 3}, {.dilations = {2, 1}, .pads = {0, 2, 1, 1}});
  layer("a row of taps", {3, 2, 12, 40}, {64, 2, 1, 5}, {.pads = {0, 2, 0, 2}});
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    CHECK(windows(check, target) >= 2);
  }
  PlanCheck ragged;
  ragged.out("features",
             ragged.b.conv(ragged.input({2, 3, 30, 27}), ragged.input({42, 3, 7, 7}), nullptr, {.strides = {2, 2}}));
  CHECK(ragged.problem("cpu-256", true, 1e-6, evaluate(*ragged.graph, ragged.inputs, ragged.symbols)) == "");
  CHECK(windows(ragged, "cpu-256") == 0);
}

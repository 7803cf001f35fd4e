// Which steps become one megakernel.
#include "compiler/schedule/megakernel.h"

#include <algorithm>
#include <functional>

#include "tests/schedule/scheduled.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// The steps that the pass leaves, one word a step.
std::string forms(std::span<const Step> steps) {
  std::string out;
  for (const Step& step : steps) {
    out += out.empty() ? "" : " ";
    out += step.is_kernel()            ? "kernel"
           : step.is<MegakernelStep>() ? "megakernel(" + forms(step.body()) + ")"
                                       : "loop(" + forms(step.body()) + ")";
  }
  return out;
}

std::string gathered(const std::string& graph, const std::string& target, const std::vector<std::string>& disabled,
                     const std::function<void(std::vector<Step>&)>& change = nullptr) {
  Compiled c = compiled_up_to("kernels", graph, target, disabled);
  if (change) change(c.schedule.entries[0].steps);
  megakernel(c.schedule, {.target = find_target(target)});
  return forms(c.schedule.entries[0].steps);
}

}  // namespace

TEST_CASE("kernels one after another, and loops among them, are one launch on a CPU") {
  CHECK(gathered(kLayer, "cpu", {}) == "megakernel(kernel kernel)");
  CHECK(gathered(kLoop, "cpu", {}).starts_with("megakernel(kernel loop("));
}

TEST_CASE("one kernel alone stays what it is; a loop alone is a launch") {
  CHECK(gathered(kLayer, "cpu", {}, [](std::vector<Step>& steps) { steps.resize(1); }) == "kernel");
  CHECK(gathered(kLoop, "cpu", {}, [](std::vector<Step>& steps) {
          steps = {*std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.is_loop(); })};
        }).starts_with("megakernel(loop("));
}

TEST_CASE("a loop that a condition ends is none of a launch, and what is within it is") {
  const auto ended = [](std::vector<Step>& steps) {
    steps = {*std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.is_loop(); })};
    auto& loop = *steps[0].as<LoopStep>();
    loop.condition = "goes_on";
    loop.body.push_back(loop.body[0]);
  };
  CHECK(gathered(kLoop, "cpu", {}, ended).starts_with("loop(megakernel(kernel"));
}

TEST_CASE("steps beside each other keep a launch to themselves; other devices have a launch a kernel") {
  CHECK(gathered(kLayer, "cpu", {}, [](std::vector<Step>& steps) { steps[1].as<KernelStep>()->beside = true; }) ==
        "kernel kernel");
  CHECK(gathered(kLayer, "gpu", {}) == "kernel kernel");
  CHECK(gathered(kLayer, "llvmpipe", {}) == "kernel kernel");
}

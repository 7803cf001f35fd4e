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

TEST_CASE("one kernel alone stays what it is, a loop alone is a launch") {
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

TEST_CASE(
    "a loop of more buffers than a launch passes is a launch with one pointer for its scratch, if arguments may be merged") {
  const auto of_loop = [](int values, std::vector<std::string> disabled) {
    Compiled c = compiled_up_to("kernels", wide_loop(values), "cpu");
    std::vector<Step>& steps = c.schedule.entries[0].steps;
    const auto loop = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.is_loop(); });
    REQUIRE(loop != steps.end());
    steps = std::vector<Step>(loop, loop + 1);
    megakernel(c.schedule, {.target = find_target("cpu"), .disabled = std::move(disabled)});
    return c.schedule.entries[0].steps[0].is<MegakernelStep>();
  };
  CHECK(of_loop(20, {"merge_arguments"}));
  CHECK(of_loop(80, {}));
  CHECK_FALSE(of_loop(80, {"merge_arguments"}));
  CHECK_FALSE(of_loop(400, {}));
}

TEST_CASE("a loop whose scratch is one pointer computes what it did") {
  const std::string text = wide_loop(80);
  for (const char* disabled : {"loop_kernel", "megakernel"}) {
    CAPTURE(disabled);
    const auto graph = parse_graph(text, find_op);
    std::vector<HostTensor> inputs;
    for (const auto& input : graph->inputs())
      inputs.push_back(random_tensor(DType::f32, bind_shape(input->type.shape, {}), static_cast<unsigned>(inputs.size()) + 1));
    CompileOptions options = default_options();
    options.disabled.emplace_back(disabled);
    CHECK(compare_with_reference(*graph, inputs, options).max_rel < 1e-5);
  }
}

TEST_CASE("steps beside each other keep a launch to themselves, other devices have a launch a kernel") {
  CHECK(gathered(kLayer, "cpu", {}, [](std::vector<Step>& steps) { steps[1].as<KernelStep>()->beside = true; }) ==
        "kernel kernel");
  CHECK(gathered(kLayer, "gpu", {}) == "kernel kernel");
  CHECK(gathered(kLayer, "llvmpipe", {}) == "kernel kernel");
}

// Training with values computed again: the same numbers from a smaller arena.
#include <doctest/doctest.h>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/training/training.h"
#include "plan_generated.h"
#include "runtime/package/memory.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// A residual network with batch normalisation and dropout.
std::shared_ptr<Module> network() {
  std::string states, parameters, body;
  std::string x = "%x";
  int next = 0;
  const auto add = [&](const std::string& text) {
    body += "      %" + std::to_string(next) + " = " + text + "\n";
    return "%" + std::to_string(next++);
  };
  for (int layer = 0; layer < 6; ++layer) {
    const std::string n = std::to_string(layer);
    states += "    state \"w" + n + "\" : f32[8, 8, 1, 1] = f32[8, 8, 1, 1] random " + n + "\n";
    parameters += ", %w" + n + ": f32[8, 8, 1, 1]";
    for (const char* name : {"s", "b", "m", "v"}) {
      states += "    state \"" + (name + n) + "\" : f32[8] = f32[8] random 9\n";
      parameters += std::string(", %") + name + n + ": f32[8]";
    }
    const std::string c = add("conv(" + x + ", %w" + n + ") {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}");
    const std::string z =
        add("batch_norm(" + c + ", %s" + n + ", %b" + n + ", %m" + n + ", %v" + n + ") {epsilon=0.1, momentum=0.9}");
    const std::string d = add("dropout(" + z + ") {ratio=0.2}");
    x = add("relu(" + add("add(" + d + ", " + x + ")") + ")");
  }
  auto module =
      std::make_shared<Module>(parse_module("    module \"m\"\n" + states + "    graph predict(%x: f32[4, 8, 20, 20]" +
                                                parameters + ") {\n" + body + "      return y=" + x + "\n    }\n",
                                            find_op));
  build_training(*module, {parse_loss("mse"), parse_optimizer("sgd,lr=0.001,momentum=0.9"), {}, {}, 3});
  return module;
}

std::uint64_t arena_bytes(const PlanRunner& runner) {
  return package::plan_memory(*plan::GetPlan(runner.compiled().plan.metadata.data()), 1, {}).arena_bytes;
}

}  // namespace

TEST_CASE("training with values computed again gives the same losses from a smaller arena") {
  const HostTensor x = random_tensor(DType::f32, {4, 8, 20, 20}, 1), labels = random_tensor(DType::f32, {4, 8, 20, 20}, 2);
  for (const bool fuse : {true, false}) {
    CAPTURE(fuse);
    CompileOptions kept = default_options();
    if (!fuse) kept.disabled = {"fuse"};
    CompileOptions again = kept;
    again.recompute_bytes = 0;
    PlanRunner a(network(), kept), b(network(), again);
    CHECK(arena_bytes(b) < arena_bytes(a));
    for (int step = 0; step < 4; ++step) {
      const double wanted = a.run(std::vector{x, labels}, {}, 1).at(0).at(0);
      CHECK(b.run(std::vector{x, labels}, {}, 1).at(0).at(0) == doctest::Approx(wanted).epsilon(1e-5));
    }
  }
}

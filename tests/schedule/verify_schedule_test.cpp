// What verify() finds wrong, each by one change of a schedule that is right.
#include "compiler/schedule/verify_schedule.h"

#include <functional>

#include "compiler/kernels/parse_schedule.h"
#include "tests/schedule/scheduled.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// The message about the layer's schedule after `change`.
std::string message(const std::function<void(Schedule&)>& change) {
  Compiled c = compiled_up_to("kernels", kLayer, "cpu");
  REQUIRE(verify(c.schedule) == "");
  REQUIRE(c.schedule.entries[0].steps.size() == 2);
  change(c.schedule);
  return verify(c.schedule);
}

std::string message_of_steps(const std::function<void(std::vector<Step>&)>& change) {
  return message([&](Schedule& s) { change(s.entries[0].steps); });
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Both steps in one, of the form `all`.
template <class Form>
std::string message_of_body(Form all) {
  return message_of_steps([&](std::vector<Step>& steps) {
    all.body = std::move(steps);
    steps = {{std::move(all)}};
  });
}

}  // namespace

TEST_CASE("every schedule is well-formed after each pass") {
  for (const Target& row : target_rows()) {
    for (const std::string& graph : {kLayer, kConvolutions, kLoop}) {
      for (const std::vector<std::string>& disabled :
           {std::vector<std::string>{}, {"fuse"}, {"megakernel"}, {"loop_kernel"}, {"small_gemm", "fuse_in_work_group"}}) {
        Compiled c = compiled_up_to("kernels", graph, row.name, disabled);
        ScheduleContext context{.target = row, .disabled = disabled, .error_budget = 5e-6, .rounds_weights = true};
        context.target.precision.products = Products::rounded;
        context.verify_each = true;
        CHECK_NOTHROW(run_schedule_passes(c.schedule, schedule_passes(), context));
        CHECK(verify(c.schedule) == "");
      }
    }
  }
}

TEST_CASE("kernels: operands, nodes, stages and stores name what there is") {
  const auto of_kernel = [](const std::function<void(Kernel&)>& change) {
    return message([&](Schedule& s) { change(s.kernels[0]); });
  };
  CHECK(has(of_kernel([](Kernel& k) { k.operands[0].buffer = 99; }), "is buffer 99, which there is not"));
  CHECK(has(of_kernel([](Kernel& k) { k.operands[0].dtype = DType::i64; }), "operand 0 is i64, buffer"));
  CHECK(has(of_kernel([](Kernel& k) {
              for (Operand& o : k.operands) o.written = true;
            }),
            "which is given"));
  CHECK(has(of_kernel([](Kernel& k) {
              for (ScalarNode& n : k.nodes) n.operand = n.kind == ScalarNode::Kind::load ? 7 : -1;
            }),
            "loads operand 7 of"));
  CHECK(has(of_kernel([](Kernel& k) { k.nodes[0].args = {0}; }), "node %0 does not stand behind its argument %0"));
  CHECK(
      has(of_kernel([](Kernel& k) { k.stages[0].axes = {5}; }), "a stage reduces over an axis that the kernel does not have"));
  CHECK(has(of_kernel([](Kernel& k) { k.stores[0].value = 1000; }), "a store's value is no node"));
  CHECK(has(of_kernel([](Kernel& k) { k.stores[0].operand = 0; }), "which is not written"));
  CHECK(has(of_kernel([](Kernel& k) { k.contraction->m = {9}; }), "the contraction names an axis"));
  CHECK(has(of_kernel([](Kernel& k) { k.contraction->shares = 0; }), "0 work-groups share the terms of a tile"));
  CHECK(has(of_kernel([](Kernel& k) { k.contraction->windows = {2, 2, 2}; }), "3 lengths of windows for"));
}

TEST_CASE("steps: one thing each, of what there is, with a body that fits") {
  const auto becomes = [](Step made) { return message_of_steps([&](std::vector<Step>& s) { s[1] = made; }); };
  CHECK(becomes({KernelStep{2}}) == "entry g, step 1: is number 2 of 2");
  CHECK(becomes({KernelStep{}}) == "entry g, step 1: is number -1 of 2");
  CHECK(becomes({GemmStep{0}}) == "entry g, step 1: is number 0 of 0");
  CHECK(becomes({ReadingStep{3}}) == "entry g, step 1: is number 3 of 0");
  CHECK(becomes({HostStep{0}}) == "entry g, step 1: is number 0 of 0");
  CHECK(becomes({LoopKernelStep{}}) == "entry g, step 1: has no body");
  CHECK(becomes({WorkGroupStep{3, "t", {}}}) == "entry g, step 1: has no body");
  CHECK(becomes({LoopStep{.trip = 3, .counter = "t", .body = {}}}) == "");  // whose kernels have no elements
  CHECK(has(message_of_steps([](auto& s) { s[0] = {KernelStep{0, true}}; }), "step 0: beside a step that is no kernel"));
  CHECK(
      has(becomes({KernelStep{1, false, KernelStep::Prefetch{0, 0}}}), "prefetches weights of a kernel that does not follow"));
  CHECK(message_of_body(MegakernelStep{}) == "");
  CHECK(message_of_body(LoopKernelStep{}) == "");
  CHECK(message_of_body(WorkGroupStep{3, "t", {}}) == "");
  CHECK(has(message_of_body(WorkGroupStep{}), "has no counter"));
  CHECK(has(message_of_body(AttentionStep{}), "is attention of 2 kernels"));
  CHECK(has(message_of_body(ParallelLoopsStep{}), "holds steps that are no loops"));
  CHECK(has(message_of_body(LoopStep{.trip = 3, .body = {}}), "has no counter"));
  CHECK(has(message_of_body(LoopStep{.trip = 3, .counter = "t", .slots = 2, .body = {}}), "slots without a symbol"));
}

TEST_CASE("groups of one text hold kernels of one family that do not need each other") {
  const auto group = [](std::vector<Step> body) {
    return message_of_steps([&](std::vector<Step>& s) { s.insert(s.begin(), {RaggedStep{body}}); });
  };
  CHECK(group({{KernelStep{0}}}) == "entry g, step 0: is a group of 1 kernels");
  CHECK(group({{KernelStep{0}}, {KernelStep{7}}}) == "entry g, step 0: is number 7 of 2");
  CHECK(group({{KernelStep{0}}, {LoopStep{.trip = 3, .counter = "t", .body = {}}}}).ends_with("is of no family"));  // a product
  // Eight kernels that add 1 to a row of their own of a buffer.
  const auto rows = [](const std::function<void(Schedule&)>& change) {
    std::string text = "buffer 0 input \"x\": f32[64]\nbuffer 1 arena \"y\": f32[64]\n", steps;
    for (int k = 0; k < 8; ++k) {
      const std::string n = std::to_string(k);
      text += "kernel pointwise k" + n + " {\n  axis i < 8\n  read x0: f32 buffer 0\n  write y0: f32 buffer 1\n" +
              "  %0: f32 = x0[i + 8*" + n + "]\n  %1: f32 = 1\n  %2: f32 = add(%0, %1)\n  y0[i + 8*" + n + "] = %2\n}\n";
      steps += "    k" + n + "\n";
    }
    Schedule s = parse_schedule(text + "entry g {\n  ragged {\n" + steps + "  }\n}\n", find_op);
    REQUIRE(verify(s) == "");
    change(s);
    return verify(s);
  };
  CHECK(has(rows([](Schedule& s) { s.kernels[3].nodes[2].op_name = "mul"; }), "k3, which is of another family"));
  CHECK(has(rows([](Schedule& s) {
              s.kernels[3].operands[0].buffer = s.kernels[3].operands[1].buffer;
              s.kernels[3].nodes[0].index = s.kernels[2].nodes[0].index;
            }),
            "k3, which needs another"));
  CHECK(has(rows([](Schedule& s) { s.entries[0].steps[0].as<RaggedStep>()->body[1].as<KernelStep>()->beside = true; }),
            "holds a kernel that is beside another"));
  CHECK(has(rows([](Schedule& s) { s.kernels[2].stores[0].index = s.kernels[1].stores[0].index; }), "k2, which needs another"));
}

TEST_CASE("a step that is no kernel is not taken for one") {
  CHECK(Step{KernelStep{1}}.kernel() == 1);
  CHECK_THROWS_AS(Step{GemmStep{1}}.kernel(), InternalError);
}

TEST_CASE("steps read what was written before, or in a loop around them") {
  const auto swap = [](std::vector<Step>& s) { std::swap(s[0], s[1]); };
  CHECK(has(message_of_steps(swap), "entry g, step 0: reads buffer"));
  CHECK(has(message_of_steps(swap), "which no step before it writes"));
  CHECK(message_of_steps([&](std::vector<Step>& s) {
          swap(s);
          s = {{LoopStep{.trip = 3, .counter = "t", .body = s}}};
        }) == "");
}

TEST_CASE("symbols of kernels are the module's, or a loop's around them") {
  const std::string outside = message([](Schedule& s) { s.kernels[0].axes.back().extent = Expr::symbol("rows"); });
  CHECK(has(outside, "uses the symbol rows, which nothing around it defines"));
  Compiled c = compiled_up_to("kernels", kLoop, "cpu", {"loop_kernel"});
  REQUIRE(verify(c.schedule) == "");
  for (Step& step : c.schedule.entries[0].steps) {
    if (auto* loop = step.as<LoopStep>()) loop->counter = "other";
  }
  CHECK(has(verify(c.schedule), "which nothing around it defines"));
}

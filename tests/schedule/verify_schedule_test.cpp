// What verify() finds wrong, each by one change of a schedule that is right.
#include "compiler/schedule/verify_schedule.h"

#include <functional>

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

// Both steps in one, which `form` makes something of.
std::string message_of_body(const std::function<void(Step&)>& form) {
  return message_of_steps([&](std::vector<Step>& steps) {
    Step all;
    all.body = std::move(steps);
    form(all);
    steps = {all};
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
  CHECK(message_of_steps([](auto& s) { s[1].kernel = 2; }) == "entry g, step 1: is number 2 of 2");
  CHECK(message_of_steps([](auto& s) { s[1].gemm = 0; }) == "entry g, step 1: is number 0 of 0");
  CHECK(has(message_of_steps([](auto& s) { s[1].chain = true; }), "step 1: is several things at once"));
  CHECK(has(message_of_steps([](auto& s) { s[1].kernel = -1; }), "step 1: has no body"));
  CHECK(message_of_steps([](auto& s) {  // whose kernels have no elements
          s[1].kernel = -1;
          s[1].trip = 3;
          s[1].counter = "t";
        }) == "");
  CHECK(has(message_of_steps([](auto& s) { s[1].body = {s[0]}; }), "step 1: has a body beside what it is"));
  CHECK(has(message_of_steps([](auto& s) { s[0].beside = true; }), "step 0: beside a step that is no kernel"));
  CHECK(has(message_of_steps([](auto& s) { s[1].prefetched = 0; }), "prefetches weights of a kernel that does not follow"));
  CHECK(message_of_body([](Step& s) { s.megakernel = true; }) == "");
  CHECK(has(message_of_body([](Step& s) { s.megakernel = s.attention = true; }), "is several things at once"));
  CHECK(has(message_of_body([](Step& s) { s.attention = true; }), "is attention of 2 kernels"));
  CHECK(has(message_of_body([](Step& s) { s.apart = true; }), "holds steps that are no loops"));
  CHECK(has(message_of_body([](Step& s) { s.trip = 3; }), "has no counter"));
  CHECK(has(message_of_body([](Step& s) {
              s.megakernel = true;
              s.counter = "t";
            }),
            "has a counter, and is no loop"));
  CHECK(has(message_of_body([](Step& s) {
              s.trip = 3;
              s.counter = "t";
              s.places = 2;
            }),
            "places without a symbol"));
}

TEST_CASE("steps read what was written before, or in a loop around them") {
  const auto swap = [](std::vector<Step>& s) { std::swap(s[0], s[1]); };
  CHECK(has(message_of_steps(swap), "entry g, step 0: reads buffer"));
  CHECK(has(message_of_steps(swap), "which no step before it writes"));
  CHECK(message_of_body([&](Step& s) {
          swap(s.body);
          s.trip = 3;
          s.counter = "t";
        }) == "");
}

TEST_CASE("symbols of kernels are the module's, or a loop's around them") {
  const std::string outside = message([](Schedule& s) { s.kernels[0].axes.back().extent = Expr::symbol("rows"); });
  CHECK(has(outside, "uses the symbol rows, which nothing around it defines"));
  Compiled c = compiled_up_to("kernels", kLoop, "cpu", {"loop_kernel"});
  REQUIRE(verify(c.schedule) == "");
  for (Step& step : c.schedule.entries[0].steps) {
    if (step.is_loop()) step.counter = "other";
  }
  CHECK(has(verify(c.schedule), "which nothing around it defines"));
}

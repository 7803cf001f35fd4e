// Plans with right checksums that would run without end or make texts without end: a run has limits, and is cancelled.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "oclc/oclc.hpp"
#include "tests/runtime/error_of.h"
#include "tests/runtime/hostile_plans.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/plans.h"
#include "tests/runtime/string_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace hostile_run_test {

namespace {

// `depth` loops within each other of `trips` each, the innermost empty or with a launch.
fb::PlanT nested_loops(int depth, std::int64_t trips, bool launches) {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4));
  plan.programs.push_back(program("p", "kernel void k(global float* y, long y0) { y[y0] = 1; }"));
  std::vector<std::unique_ptr<fb::StepT>> body;
  if (launches) body.push_back(launch("k", 0, {1}, {1}, writes(0)));
  for (int d = 0; d < depth; ++d) {
    plan.symbols.push_back(symbol("i" + std::to_string(d), 0, 1 << 24, true));
    auto step = loop(trips, d, std::move(body));
    body.clear();
    body.push_back(std::move(step));
  }
  auto e = entry("predict");
  e->outputs.push_back(binding("y", 0, {1}));
  e->steps = std::move(body);
  plan.entries.push_back(std::move(e));
  return plan;
}

// y = x + x as texts, then y = y + y so often.
fb::PlanT doubling_plan(int trips) {
  fb::PlanT plan = new_plan();
  plan.strings = {""};
  plan.symbols.push_back(symbol("i", 0, 1 << 24, true));
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 4, fb::DType::string_));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 4, fb::DType::string_));
  const auto concat = [](int from, int to) {
    fb::HostT host;
    host.op = "string_concat";
    host.inputs.push_back(operand(reads(from), {1}));
    host.inputs.push_back(operand(reads(from), {1}));
    host.outputs.push_back(operand(writes(to), {1}));
    auto step = std::make_unique<fb::StepT>();
    step->body.Set(std::move(host));
    return step;
  };
  auto e = entry("predict");
  e->inputs.push_back(binding("x", 0, {1}, fb::DType::string_));
  e->outputs.push_back(binding("y", 1, {1}, fb::DType::string_));
  e->steps.push_back(concat(0, 1));
  std::vector<std::unique_ptr<fb::StepT>> body;
  body.push_back(concat(1, 1));
  e->steps.push_back(loop(trips, 0, std::move(body)));
  plan.entries.push_back(std::move(e));
  return plan;
}

}  // namespace

TEST_CASE("P8: a run has a limit of steps of the host, which a context can set") {
  const rt::Plan plan = load(finish(nested_loops(8, 1 << 24, false)));
  const auto begin = std::chrono::steady_clock::now();
  rt::Session session(plan, rt::Context());
  CHECK(
      error_of([&] { session.run(0); }) ==
      "a run would take more than 16777216 steps (launches, trips of loops, what the host does); give inputs that need fewer, "
      "or allow more: max_host_steps of the context");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.max_host_steps = 9;
  const rt::Context context(options);
  rt::Session four(load(finish(nested_loops(1, 4, true))), context);  // a loop, four trips, four launches
  four.run(0);
  rt::Session five(load(finish(nested_loops(1, 5, true))), context);
  CHECK(error_of([&] { five.run(0); }).starts_with("a run would take more than 9 steps"));
}

TEST_CASE("P8: a run is cancelled from another thread, and the next one runs") {
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.max_host_steps = std::uint64_t{1} << 40;
  const rt::Context context(options);
  rt::Session session(load(finish(nested_loops(2, 1 << 20, true))), context);
  oclc_session_cancel(session.get());  // nothing runs: nothing happens
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      oclc_session_cancel(session.get());
    }
  });
  CHECK(error_of([&] { session.run(0); }, OCLC_E_CANCELLED) == "the run was cancelled");
  done = true;
  other.join();
  oclc_session_cancel(nullptr);
  rt::Session small(load(finish(nested_loops(2, 3, true))), context);
  small.run(0);
  CHECK(small.stats().launches == 9);
}

TEST_CASE("launches beyond what a queue should hold are all made") {
  rt::Session session(load(finish(nested_loops(1, 40000, true))), rt::Context());
  session.run(0);
  CHECK(session.stats().launches == 40000);
}

TEST_CASE("P9: texts that the host makes have a limit") {
  std::vector<const char*> y;
  rt::Session few(load(finish(doubling_plan(10))), rt::Context());
  CHECK(text_run_error(few, y, {"0123456789abcdef"}, OCLC_E_MEMORY).empty());
  CHECK(std::string(y[0]).size() == 16 << 11);
  rt::Session many(load(finish(doubling_plan(40))), rt::Context());
  CHECK(text_run_error(many, y, {"0123456789abcdef"}, OCLC_E_MEMORY) == "a run makes strings of more than 67108864 bytes");
}

TEST_CASE("P11: a host step's operand has what its buffer's size is now, and none if that is negative") {
  fb::PlanT plan = string_plan();
  plan.symbols[1]->upper = E(5).ptr();
  const E n = E::symbol(0), kept = E::symbol(1);
  plan.buffers.push_back(arena_buffer("w", n * 4 + kept * -1000000, 0, 0, 2));
  plan.buffers.back()->dtype = fb::DType::string_;
  fb::HostT host;
  host.op = "string_normalize";
  host.integers = {1, 2};
  host.texts = {"stop"};
  host.inputs.push_back(operand(reads(0), {n}));
  host.outputs.push_back(operand(writes(4), {std::int64_t{1} << 40}));
  host.outputs.push_back(operand(writes(3), {1}));
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(host));
  plan.entries[0]->steps.push_back(std::move(step));
  rt::Session session(load(finish(plan)), rt::Context());
  std::vector<const char*> y;
  CHECK(text_run_error(session, y, {"a", "b"}, OCLC_E_PLAN) ==
        "plan: invalid plan: operator 'string_normalize' of the host uses 1099511627776 elements from 0 on of buffer 4, which "
        "has 0");
}

TEST_CASE("P3: long texts of dimensions are cut") {
  fb::PlanT plan = vector_plan();
  plan.symbols[0]->name = std::string(8000, 'N');
  std::vector<std::int64_t>& code = plan.entries[0]->outputs[0]->shape[0]->code;
  while (code.size() + 3 <= 16384) code.insert(code.end(), {1, 0, 3});
  const rt::Plan loaded = load(finish(plan, {1, 2, 3, 4}));
  const std::string text = loaded.outputs(0)[0].shape_text;
  CHECK(text.size() == 4096 + 2);
  CHECK(text.ends_with("NNN...]"));
}

}  // namespace hostile_run_test

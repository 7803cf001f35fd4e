// Many consecutive runs of an entry point.
#include <doctest/doctest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "oclc/oclc.hpp"
#include "tests/runtime/error_of.h"
#include "tests/runtime/failing_driver.h"
#include "tests/runtime/plans.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// State "h" [], zero at first, which the output "h_next" feeds. predict: y[i] = h + scale * x[i] for x[N], then h += x[0].
std::vector<std::byte> cell_plan() {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("N", 1, 1 << 20));
  const E n = E::symbol(0);
  plan.buffers.push_back(buffer("h", fb::BufferKind::state, 4));
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, n * 4));
  plan.buffers.push_back(buffer("scale", fb::BufferKind::input, 4));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, n * 4));
  plan.buffers.push_back(buffer("last", fb::BufferKind::output, 4));
  auto v = std::make_unique<fb::VariableT>();
  v->name = "h";
  v->buffer = 0;
  v->carried_from = "h_next";
  plan.variables.push_back(std::move(v));
  plan.programs.push_back(program("cell", R"(
kernel void give(global const float* h, long h0, global const float* x, long x0, global const float* s, long s0, global float* y,
                 long y0) {
  const size_t i = get_global_id(0);
  y[y0 + i] = h[h0] + s[s0] * x[x0 + i];
}
kernel void advance(global float* h, long h0, global const float* x, long x0, global float* last, long l0) {
  h[h0] += x[x0];
  last[l0] = h[h0];
})"));
  auto e = entry("predict");
  e->inputs.push_back(binding("x", 1, {n}));
  e->inputs.push_back(binding("scale", 2, {}));
  e->outputs.push_back(binding("y", 3, {n}));
  e->outputs.push_back(binding("last", 4, {}));
  e->steps.push_back(launch("give", 0, {n}, {1}, reads(0), reads(1), reads(2), writes(3)));
  e->steps.push_back(launch("advance", 0, {1}, {1}, writes(0), reads(1), writes(4)));
  plan.entries.push_back(std::move(e));
  return finish(plan);
}

struct Cell {
  rt::Plan plan = load(cell_plan());
  rt::Session session{plan, rt::Context()};
  float scale = 10;

  Cell() { session.set_input<float>(0, "scale", &scale, {}); }
  float state() const {
    float h = 0;
    session.read_variable("h", &h, sizeof h);
    return h;
  }
  std::string steps_error(std::uint64_t steps, const std::vector<oclc_series>& series, oclc_status status = OCLC_E_BINDING) {
    return error_of([&] { session.run_steps(0, steps, series); }, status);
  }
};

}  // namespace

TEST_CASE("each step reads its own values and the state of the one before, outputs of all steps come back") {
  Cell cell;
  const std::vector<float> x = ramp(5 * 3);
  std::vector<float> y(5 * 3), wanted;
  float last = 0, h = 0;
  for (std::size_t step = 0; step < 5; ++step) {
    for (std::size_t i = 0; i < 3; ++i) wanted.push_back(h + 10 * x[step * 3 + i]);
    h += x[step * 3];
  }
  cell.session.set_output<float>(0, "last", &last, {});
  cell.session.run_steps(0, 5,
                         {rt::host_series<const float>(OCLC_INPUT, "x", x.data(), {5, 3}),
                          rt::host_series<float>(OCLC_OUTPUT, "y", y.data(), {5, 3})});
  CHECK(y == wanted);
  CHECK(last == h);  // bound, without a series: the last run's
  CHECK(cell.state() == h);

  // What was bound before is bound again.
  const std::vector<float> one = {1, 2};
  std::vector<float> z(2);
  cell.session.set_input(0, "x", one.data(), {2});
  cell.session.set_output(0, "y", z.data(), {2});
  cell.session.run_steps(0, 2, {rt::host_series<const float>(OCLC_INPUT, "x", x.data(), {2, 2})});
  CHECK(cell.state() == h + x[0] + x[2]);
  CHECK(z == std::vector<float>{h + x[0] + 10 * x[2], h + x[0] + 10 * x[3]});  // the last run's
  cell.session.run(0);
  CHECK(z == std::vector<float>{h + 2 + 10, h + 2 + 20});
  cell.session.run_steps(0, 3);
  CHECK(cell.state() == h + 2 + 1 + 3);
  CHECK(z == std::vector<float>{h + 2 + 3 + 10, h + 2 + 3 + 20});
}

TEST_CASE("the host gets no bytes between steps but those of the outputs asked for") {
  constexpr std::size_t kSteps = 1000;
  const std::vector<float> x = ramp(kSteps * 4, 0.25f);
  std::vector<float> y(kSteps * 4), last(kSteps);
  for (const bool asks : {false, true}) {
    CAPTURE(asks);
    Cell cell;

    const std::vector<std::int64_t> scalars = {kSteps}, rows = {kSteps, 4};
    std::vector<oclc_series> series = {rt::host_series<const float>(OCLC_INPUT, "x", x.data(), rows)};
    if (asks) {
      series.push_back(rt::host_series<float>(OCLC_OUTPUT, "last", last.data(), scalars));
      series.push_back(rt::host_series<float>(OCLC_OUTPUT, "y", y.data(), rows));
    }
    failing.bytes_to_host = failing.bytes_to_device = 0;
    cell.session.run_steps(0, kSteps, series);
    CHECK(failing.bytes_to_host == (asks ? kSteps * 5 * sizeof(float) : 0));
    CHECK(failing.bytes_to_device == kSteps * 4 * sizeof(float) + sizeof(float));  // all steps of x, and scale once
    float h = 0;
    for (std::size_t step = 0; step < kSteps; ++step) {
      h += x[step * 4];
      if (asks) REQUIRE(last[step] == h);
    }
    CHECK(cell.state() == h);
  }
}

TEST_CASE("more steps than lie on the device at once go through in pieces") {
  Cell cell;
  constexpr std::int64_t kSteps = 40, kWide = 1 << 20;  // 8 MiB a step of x and y
  std::vector<float> x(static_cast<std::size_t>(kSteps * kWide)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1021);
  const std::vector<std::int64_t> shape = {kSteps, kWide};
  cell.session.run_steps(0, kSteps,
                         {rt::host_series<const float>(OCLC_INPUT, "x", x.data(), shape),
                          rt::host_series<float>(OCLC_OUTPUT, "y", y.data(), shape)});
  float h = 0;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const std::size_t at = step * kWide;
    for (const std::size_t i : {std::size_t{0}, std::size_t{4711}, std::size_t{kWide - 1}})
      REQUIRE(y[at + i] == h + 10 * x[at + i]);
    h += x[at];
  }
}

TEST_CASE("a series that does not fit is refused, and nothing has run") {
  Cell cell;
  std::vector<float> x(12), y(12);
  const std::vector<std::int64_t> four = {4, 3}, flat = {12}, three = {3, 3};
  const auto in = [&](const std::vector<std::int64_t>& shape) {
    return rt::host_series<const float>(OCLC_INPUT, "x", x.data(), shape);
  };
  CHECK(cell.steps_error(4, {in(flat)}) == "input 'x': wanted 4 steps of shape [N], found [12]");
  CHECK(cell.steps_error(4, {in(three)}) == "input 'x': wanted 4 steps of shape [N], found [3, 3]");
  CHECK(cell.steps_error(4, {in(four), in(four)}, OCLC_E_ARGUMENT) == "input 'x' has two series");
  oclc_series bad = in(four);
  bad.name = "z";
  CHECK(cell.steps_error(4, {bad}, OCLC_E_ARGUMENT) == "entry point 'predict' has no input 'z'; it has: x, scale");
  bad = in(four);
  bad.dtype = OCLC_I32;
  CHECK(cell.steps_error(4, {bad}) == "input 'x': wanted float32, found int32");
  bad = in(four);
  bad.bytes -= 4;
  CHECK(cell.steps_error(4, {bad}) == "input 'x': 4 steps of shape [3] need 4 times 12 bytes, found 44");
  bad = in(four);
  bad.host = nullptr;
  CHECK(cell.steps_error(4, {bad}) == "input 'x': its host pointer is NULL");
  bad = in(four);
  bad.shape = nullptr;
  CHECK(cell.steps_error(4, {bad}) == "input 'x': its shape is NULL");
  oclc_series out = rt::host_series<float>(OCLC_OUTPUT, "y", y.data(), three);
  const std::vector<std::int64_t> wide = {4, 2};
  out.shape = wide.data();
  CHECK(cell.steps_error(4, {in(four), out}) == "output 'y': wanted steps of shape [3], found [2]");
  out.shape = nullptr;  // its size alone
  CHECK(cell.steps_error(4, {in(four), out}) == "output 'y': 4 steps of shape [3] need 4 times 12 bytes, found 36");
  CHECK(cell.steps_error(2, {}) ==
        "dimension 'N' has no value: bind the inputs of entry point 'predict' first, or the dimension itself");
  CHECK(oclc_session_run_steps(cell.session.get(), 0, 1, nullptr, 1) == OCLC_E_ARGUMENT);
  CHECK(cell.state() == 0);
}

TEST_CASE("a failure within the steps leaves the bindings, and later runs work") {
  Cell cell;
  const std::vector<float> x = ramp(600 * 2);
  const std::vector<float> one = {5, 6};
  std::vector<float> y(2);
  cell.session.set_input(0, "x", one.data(), {2});
  cell.session.set_output(0, "y", y.data(), {2});
  cell.session.run(0);
  const std::vector<std::int64_t> shape = {600, 2};
  const std::vector<oclc_series> series = {rt::host_series<const float>(OCLC_INPUT, "x", x.data(), shape)};
  failing.reset(0, CL_OUT_OF_RESOURCES);
  cell.session.run_steps(0, 600, series);
  const long calls = failing.calls;
  for (const long at : {long{1}, calls / 3, calls * 9 / 10}) {  // well before the end
    failing.reset(at, CL_OUT_OF_RESOURCES);
    const std::string text = error_of([&] { cell.session.run_steps(0, 600, series); }, OCLC_E_DEVICE);
    failing.reset(0, CL_SUCCESS);
    CHECK(text != "");
    cell.session.reset_state();
    cell.session.run(0);
    CHECK(y == std::vector<float>{50, 60});
  }
}

TEST_CASE("steps end where they are cancelled") {
  Cell cell;
  const std::vector<float> one = {1};
  cell.session.set_input(0, "x", one.data(), {1});
  cell.session.run(0);
  std::atomic<bool> over = false;
  std::thread other([&] {
    while (!over) oclc_session_cancel(cell.session.get());
  });
  CHECK(cell.steps_error(200'000'000, {}, OCLC_E_CANCELLED) == "the run was cancelled");
  over = true;
  other.join();
  CHECK(cell.state() < 200'000'000);
}

TEST_CASE("a plan says which output feeds a variable") {
  const rt::Plan plan = load(cell_plan());
  REQUIRE(plan.variables().size() == 1);
  CHECK(std::string(plan.variables()[0].name) == "h");
  REQUIRE(plan.variables()[0].carried_from != nullptr);
  CHECK(std::string(plan.variables()[0].carried_from) == "h_next");
}

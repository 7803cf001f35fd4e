// Runs that end before their time: by the clock, or because somebody asks for it.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/runtime/error_of.h"
#include "tests/runtime/plans.h"

using namespace oclc;
using namespace oclc::test;

namespace {

using Clock = std::chrono::steady_clock;

// State `count`: each of T trips computes for n turns, then adds 1.
std::vector<std::byte> trips_plan() {
  fb::PlanT plan = new_plan();
  plan.symbols.push_back(symbol("T", 0, 100000));
  plan.symbols.push_back(symbol("n", 0, 1 << 30));
  plan.symbols.push_back(symbol("t", 0, 100000, true));
  plan.buffers.push_back(buffer("count", fb::BufferKind::state, 4));
  plan.programs.push_back(program("spinning", R"(
kernel void spin(global float* count, long c0, int n) {
  float x = count[c0];
  for (int i = 0; i < n; ++i) x = x * 0.999f + (float)i;
  count[c0] += x == 0.12345f ? 2 : 1;
})"));
  auto v = std::make_unique<fb::VariableT>();
  v->name = "count";
  v->buffer = 0;
  plan.variables.push_back(std::move(v));
  auto e = entry("spin");
  std::vector<std::unique_ptr<fb::StepT>> body;
  body.push_back(launch("spin", 0, {1}, {1}, writes(0), value(fb::ArgKind::int32, E::symbol(1))));
  e->steps.push_back(loop(E::symbol(0), 2, std::move(body)));
  plan.entries.push_back(std::move(e));
  return finish(plan);
}

struct Spinning {
  rt::Plan plan = oclc::test::load(trips_plan());
  rt::Session session{plan, rt::Context()};
  std::int64_t turns = 1 << 12;

  // Turns such that a trip takes at least so long. Of short trips many are timed at once: on a loaded machine a run alone, of
  // whatever length, takes milliseconds.
  explicit Spinning(std::chrono::microseconds of_trip) {
    const std::int64_t timed = of_trip < std::chrono::milliseconds(10) ? 20 : 1;
    session.bind_dim("T", timed);
    for (;; turns *= 2) {
      session.bind_dim("n", turns);
      session.run(0);                       // the kernel is compiled, and waiting threads are awake
      auto least = Clock::duration::max();  // others may hold up some of the runs
      for (int i = 0; i < 5; ++i) {
        const auto begin = Clock::now();
        session.run(0);
        least = std::min(least, Clock::now() - begin);
      }
      if (least >= timed * of_trip) break;
    }
    session.reset_state();
  }
  void trips(std::int64_t count) { session.bind_dim("T", count); }
  float count() const {
    float value = -1;
    session.read_variable("count", &value, sizeof value);
    return value;
  }
};

constexpr std::uint64_t kHour = 3600ull * 1000 * 1000 * 1000, kMs = 1000 * 1000;

}  // namespace

TEST_CASE("a run that takes longer than its time limit is stopped between two launches") {
  Spinning s(std::chrono::milliseconds(2));
  s.trips(2000);  // 4 s
  s.session.set_time_limit(50 * kMs);
  const auto begin = Clock::now();
  const std::string message = error_of([&] { s.session.run(0); }, OCLC_E_DEADLINE);
  CHECK(message ==
        "the run was stopped: its time limit of 50 ms has passed; allow more (oclc_session_set_time_limit), or give it less "
        "to do");
  CHECK(s.count() < 1000);
  CHECK(Clock::now() - begin < std::chrono::seconds(2));
}

TEST_CASE("a run within its time limit gives what it gives without one") {
  Spinning s(std::chrono::microseconds(10));
  s.trips(300);
  s.session.set_time_limit(kHour);
  s.session.run(0);
  CHECK(s.count() == 300);
  s.session.set_time_limit(0);
  s.session.run(0);
  CHECK(s.count() == 600);
}

TEST_CASE("a launch that has begun is not ended: the run is late when it has") {
  Spinning s(std::chrono::milliseconds(400));
  s.trips(1);
  s.session.set_time_limit(150 * kMs);
  const std::string message = error_of([&] { s.session.run(0); }, OCLC_E_DEADLINE);
  CHECK(message.starts_with("the run ended after "));
  CHECK(message.ends_with(
      " ms, behind its time limit of 150 ms; allow more (oclc_session_set_time_limit), or give it less to do"));
  CHECK(s.count() == 1);
}

TEST_CASE("a limit that has passed before the first launch lets none begin, and a later run without it is whole") {
  Spinning s(std::chrono::microseconds(10));
  s.trips(5);
  s.session.set_time_limit(1);
  CHECK(error_of([&] { s.session.run(0); }, OCLC_E_DEADLINE) != "");
  CHECK(s.count() == 0);
  s.session.set_time_limit(0);
  s.session.run(0);
  CHECK(s.count() == 5);
}

TEST_CASE("all steps of oclc_session_run_steps together have the time limit") {
  Spinning s(std::chrono::milliseconds(2));
  s.trips(1);
  s.session.set_time_limit(50 * kMs);
  CHECK(error_of([&] { s.session.run_steps(0, 2000); }, OCLC_E_DEADLINE) != "");
  CHECK(s.count() < 1000);
}

TEST_CASE("oclc_session_enqueue has the time limit while it enqueues") {
  Spinning s(std::chrono::milliseconds(2));
  s.trips(2000);
  s.session.set_time_limit(50 * kMs);
  CHECK(error_of([&] { s.session.start(0); }, OCLC_E_DEADLINE) != "");
  CHECK(s.count() < 1000);
}

TEST_CASE("with a time limit a run is cancelled however far it could have been enqueued") {
  Spinning s(std::chrono::milliseconds(2));
  s.trips(2000);
  s.session.set_time_limit(kHour);
  std::atomic<bool> ended = false;
  std::string message;
  std::thread runner([&] {
    message = error_of([&] { s.session.run(0); }, OCLC_E_CANCELLED);
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // without a limit, all trips are enqueued by then
  while (!ended) {
    s.session.cancel();
    std::this_thread::yield();
  }
  runner.join();
  CHECK(message == "the run was cancelled");
  CHECK(s.count() < 1500);
}

TEST_CASE("a time limit of no session is an argument error") {
  CHECK(oclc_session_set_time_limit(nullptr, 1) == OCLC_E_ARGUMENT);
}

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "oclc/oclc.hpp"
#include "tests/runtime/error_of.h"
#include "tests/runtime/failing_driver.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/plans.h"
#include "tests/sanitized.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("cases 93, 99: threads with sessions of their own on one plan and context compute the right numbers") {
  const rt::Plan plan = load(vector_plan_bytes());
  const rt::Context context;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      rt::Session session(plan, context);
      const std::size_t n = static_cast<std::size_t>(50 + t);
      const auto a = ramp(n, static_cast<float>(t));
      const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(n)};
      std::vector<float> y(n);
      session.set_input(0, "a", a.data(), shape);
      session.set_input(0, "b", a.data(), shape);
      session.set_output(0, "y", y.data(), shape);
      for (int run = 0; run < 100; ++run) {
        std::fill(y.begin(), y.end(), -1.f);
        session.run(0);
        for (std::size_t i = 0; i < n; ++i) wrong += y[i] != 2 * a[i] * static_cast<float>(1 + i % 4) + 1;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("sessions of one plan and context share its programs and constants") {
  const rt::Plan plan = load(vector_plan_bytes());
  const rt::Context context;
  const rt::Session first(plan, context);
  const rt::Session second(plan, context);
  const oclc_stats stats = first.stats();
  CHECK(second.stats().build_ns == stats.build_ns);  // one building and one upload, timed once
  CHECK(second.stats().upload_ns == stats.upload_ns);
  CHECK(second.stats().constant_bytes == 16);
}

TEST_CASE("handles may be released in any order, and NULL is accepted") {
  auto plan = std::make_unique<rt::Plan>(load(vector_plan_bytes()));
  auto context = std::make_unique<rt::Context>();
  rt::Session session(*plan, *context);
  plan.reset();
  context.reset();
  const auto a = ramp(8);
  std::vector<float> y(8);
  session.set_input(0, "a", a.data(), {8});
  session.set_input(0, "b", a.data(), {8});
  session.set_output(0, "y", y.data(), {8});
  session.run(0);
  check_vector_result(a, a, y);
  oclc_plan_release(nullptr);
  oclc_context_release(nullptr);
  oclc_session_release(nullptr);
  CHECK(oclc_session_run(nullptr, 0) == OCLC_E_ARGUMENT);
  CHECK(std::string(oclc_session_message(nullptr)) == "the session is NULL");
}

TEST_CASE("case 99: a forked child gets a clear error") {
  const rt::Plan plan = load(vector_plan_bytes());
  const rt::Context context;
  rt::Session session(plan, context);
  const auto a = ramp(8);
  session.set_input(0, "a", a.data(), {8});
  session.set_input(0, "b", a.data(), {8});
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const oclc_status status = oclc_session_run(session.get(), 0);
    const std::string text = std::string(oclc_status_name(status)) + ": " + oclc_session_message(session.get());
    (void)!::write(pipe_ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(pipe_ends[1]);
  char text[512] = {};
  (void)!::read(pipe_ends[0], text, sizeof text - 1);
  ::close(pipe_ends[0]);
  ::waitpid(child, nullptr, 0);
  CHECK(std::string(text) ==
        "OCLC_E_ARGUMENT: the process forked after the context was created; create a context in the child");
}

namespace {

long soak(const char* name, long otherwise) {
  const char* wish = std::getenv(name);
  return wish ? std::atol(wish) : otherwise;
}

// What a process holds.
struct Held {
  long heap = 0, resident = 0;  // bytes
  std::ptrdiff_t files = 0, threads = 0;
  long objects = 0;  // of OpenCL
};

Held held() {
  Held h;
  h.heap = static_cast<long>(::mallinfo2().uordblks);
  long total = 0;
  std::ifstream("/proc/self/statm") >> total >> h.resident;
  h.resident *= 4096;
  namespace fs = std::filesystem;
  h.files = std::distance(fs::directory_iterator("/proc/self/fd"), {});
  h.threads = std::distance(fs::directory_iterator("/proc/self/task"), {});
  h.objects = failing.objects;
  if (const char* fake = std::getenv("OCLC_OPENCL")) {
    void* library = ::dlopen(fake, RTLD_NOW | RTLD_NOLOAD);
    void* count = library ? ::dlsym(library, "fake_opencl_objects") : nullptr;
    if (count) h.objects = reinterpret_cast<long (*)()>(count)();
    if (library) ::dlclose(library);
  }
  return h;
}

// Drivers keep some of what they are given: less is allowed where there is none (tests/fake_opencl).
bool without_driver() { return std::getenv("OCLC_OPENCL") != nullptr; }

}  // namespace

// Leaks are what sanitizers report themselves.
TEST_CASE("case 100: many runs do not grow the process" * doctest::skip(kSanitized)) {
  rt::Session session(load(vector_plan_bytes()), rt::Context());
  const auto a = ramp(16);
  std::vector<float> y(16);
  session.set_input(0, "a", a.data(), {16});
  session.set_input(0, "b", a.data(), {16});
  session.set_output(0, "y", y.data(), {16});
  const long runs = soak("OCLC_SOAK_RUNS", 20000);
  for (int i = 0; i < 2000; ++i) session.run(0);
  const Held before = held();
  for (long i = 0; i < runs; ++i) session.run(0);
  const Held after = held();
  MESSAGE(runs << " runs: " << after.heap - before.heap << " bytes of the heap, " << after.resident - before.resident
               << " resident");
  CHECK(after.resident - before.resident < 1 << 20);
  if (without_driver()) CHECK(after.heap - before.heap < 4096);
  CHECK(after.files == before.files);
  CHECK(after.threads == before.threads);
  CHECK(after.objects == before.objects);
}

TEST_CASE("case 100: contexts, plans and sessions that are made and released leave nothing" * doctest::skip(kSanitized)) {
  const std::vector<std::byte> bytes = vector_plan_bytes();
  const auto cycle = [&] {
    const rt::Plan plan = load(bytes);
    const rt::Context context;
    rt::Session session(plan, context);
    const auto a = ramp(16);
    std::vector<float> y(16);
    session.set_input(0, "a", a.data(), {16});
    session.set_input(0, "b", a.data(), {16});
    session.set_output(0, "y", y.data(), {16});
    session.run(0);
  };
  const long cycles = soak("OCLC_SOAK_CYCLES", 40);
  for (int i = 0; i < 20; ++i) cycle();
  const Held before = held();
  for (long i = 0; i < cycles; ++i) cycle();
  const Held after = held();
  MESSAGE(cycles << " cycles: " << static_cast<double>(after.heap - before.heap) / static_cast<double>(cycles)
                 << " bytes of the heap each, " << (after.resident - before.resident) / cycles << " resident");
  if (without_driver()) CHECK(after.heap - before.heap < 16 * cycles);  // tables that grow now and then
  CHECK(after.heap - before.heap < 65536 * cycles);
  CHECK(after.files == before.files);
  CHECK(after.threads == before.threads);
  CHECK(after.objects == before.objects);
}

// Faults of drivers and of the machine around the runtime.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/runtime/cached_run.h"
#include "tests/runtime/driver_standin.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/failing_driver.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;

namespace faults_test {

namespace {

std::atomic<std::int64_t> wall_clock_offset = 0;  // seconds

// A context, a session, two runs with other sizes, and what it is asked for beside them.
std::vector<float> all_in_all(const rt::Plan& plan, const std::string& cache) {
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.cache_dir = cache.c_str();
  const rt::Context context(options);
  rt::Session session(plan, context);
  std::vector<float> y;
  for (const std::size_t n : {std::size_t{4}, std::size_t{5000}}) {
    const auto a = ramp(n);
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(n)};
    y.assign(n, 0);
    oclc_session_set_input(session.get(), 0, "a", nullptr);
    oclc_session_set_input(session.get(), 0, "b", nullptr);
    session.set_input(0, "a", a.data(), shape);
    session.set_input(0, "b", a.data(), shape);
    session.set_output(0, "y", y.data(), shape);
    session.run(0);
  }
  std::vector<float> read(y.size());
  session.read_output(0, "y", read.data(), read.size() * sizeof(float));
  CHECK(read == y);
  return y;
}

cl_command_queue plain_queue(cl_context& context) {
  const rt::Context chosen;
  cl_device_id device = nullptr;
  clGetCommandQueueInfo(chosen.cl_queue(), CL_QUEUE_DEVICE, sizeof device, &device, nullptr);
  context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  return clCreateCommandQueue(context, device, 0, nullptr);
}

}  // namespace

// std::chrono's system clock asks here.
extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += static_cast<time_t>(wall_clock_offset);
  return static_cast<int>(result);
}

TEST_CASE("case 88: each call of the driver fails once, with each code: an error, and nothing is left") {
  const TempDir cache;
  const rt::Plan plan = load(vector_plan_bytes());
  const std::vector<float> expected = all_in_all(plan, cache.path());
  const long before = failing.objects;
  long failed = 0;
  for (const cl_int code : {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE}) {
    for (long n = 1;; ++n) {
      failing.reset(n, code);
      std::string message;
      std::vector<float> y;
      try {
        y = all_in_all(plan, cache.path());
      } catch (const rt::Error& error) {
        message = error.what();
      }
      const bool reached = failing.calls >= n;
      failing.reset(0, code);
      INFO("call " << n << " with " << code << ": " << message);
      REQUIRE(failing.objects == before);
      if (message.empty()) REQUIRE(y == expected);  // what failed could be done without
      if (!reached) break;
      ++failed;
    }
  }
  CHECK(failed > 100);
  MESSAGE(failed << " calls failed");
}

TEST_CASE("case 90: a device that is lost in the middle of a run ends with an error, and another session lives on") {
  const TempDir cache;
  const rt::Plan plan = load(vector_plan_bytes());
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.cache_dir = cache.path().c_str();
  const rt::Context other(options);
  rt::Session living(plan, other);
  const std::vector<float> a = {1, 2, 3, 4};
  std::vector<float> y(4);
  living.set_input(0, "a", a.data(), {4});
  living.set_input(0, "b", a.data(), {4});
  living.set_output(0, "y", y.data(), {4});
  living.run(0);
  const long before = failing.objects;
  for (const cl_int code : {CL_OUT_OF_RESOURCES, CL_INVALID_COMMAND_QUEUE, -9999}) {
    for (long n = 1; n < 60; n += 3) {
      failing.reset(n, code, true);
      CHECK_THROWS_AS(all_in_all(plan, cache.path()), rt::Error);
      failing.reset(0, code);
      REQUIRE(failing.objects == before);
    }
    std::fill(y.begin(), y.end(), 0.0f);
    living.run(0);
    CHECK(y == kExpected);
  }
}

TEST_CASE("case 91: an event's callback comes when session, plan and context are released") {
  std::atomic<int> called = 0;
  cl_event event = nullptr;
  std::vector<float> y(4);
  const std::vector<float> a = {1, 2, 3, 4};
  {
    rt::Session session(load(vector_plan_bytes()), rt::Context());
    session.set_input(0, "a", a.data(), {4});
    session.set_input(0, "b", a.data(), {4});
    session.set_output(0, "y", y.data(), {4});
    event = session.enqueue(0);
    REQUIRE(clSetEventCallback(
                event, CL_COMPLETE, [](cl_event, cl_int, void* count) { ++*static_cast<std::atomic<int>*>(count); }, &called) ==
            CL_SUCCESS);
  }
  REQUIRE(clWaitForEvents(1, &event) == CL_SUCCESS);
  clReleaseEvent(event);
  for (int i = 0; i < 1000 && called == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(called == 1);
  CHECK(y == kExpected);
}

TEST_CASE("case 95: on a queue without profiling launches are told, without times") {
  cl_context cl = nullptr;
  const cl_command_queue queue = plain_queue(cl);
  {
    const rt::Context context(cl, queue);
    rt::Session session(load(vector_plan_bytes()), context);
    const std::vector<float> a = {1, 2, 3, 4};
    std::vector<float> y(4);
    session.set_input(0, "a", a.data(), {4});
    session.set_input(0, "b", a.data(), {4});
    session.set_output(0, "y", y.data(), {4});
    session.enable_profile(true);
    session.run(0);
    const auto launches = session.launches();
    REQUIRE(launches.size() == 3);
    for (const oclc_launch_info& l : launches) {
      CHECK(l.start_ns == 0);
      CHECK(l.end_ns == 0);
    }
    CHECK(y == kExpected);
  }
  clReleaseCommandQueue(queue);
  clReleaseContext(cl);
}

TEST_CASE("case 85: devices that lack what plans need are refused by name") {
  const std::string name = rt::Context().device().name;
  const auto refusal = [&](cl_device_info what, const std::string& answer, oclc_status status) {
    driver.says[what] = answer;
    const std::string message = error_of([] { rt::Context(); }, status);
    driver.says.clear();
    return message;
  };
  const cl_bool no = CL_FALSE;
  const cl_uint bits = 32;
  const auto bytes = [](const auto& value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  CHECK(refusal(CL_DEVICE_VERSION, std::string("OpenCL 1.1 x\0", 13), OCLC_E_UNSUPPORTED) ==
        "device '" + name + "' has OpenCL 1.1 x, wanted OpenCL 1.2 or newer");
  CHECK(refusal(CL_DEVICE_ENDIAN_LITTLE, bytes(no), OCLC_E_UNSUPPORTED) ==
        "device '" + name + "' is not a little-endian 64-bit device");
  CHECK(refusal(CL_DEVICE_ADDRESS_BITS, bytes(bits), OCLC_E_UNSUPPORTED) ==
        "device '" + name + "' is not a little-endian 64-bit device");
  CHECK(refusal(CL_DEVICE_COMPILER_AVAILABLE, bytes(no), OCLC_E_DEVICE) ==
        "device '" + name + "' is not available or has no compiler");
  CHECK(refusal(CL_DEVICE_AVAILABLE, bytes(no), OCLC_E_DEVICE) == "device '" + name + "' is not available or has no compiler");
}

TEST_CASE("case 87: a build log of 50 MB is told in a few lines and kept whole in a file") {
  const TempDir cache;
  for (int line = 0; failing.build_log.size() < (50u << 20); ++line)
    failing.build_log += "line " + std::to_string(line) + " " + std::string(1000, 'x') + "\n";
  const std::size_t whole = failing.build_log.size();
  const std::string message = error_of([&] { make(cache.path().c_str()); }, OCLC_E_BUILD);
  failing.build_log.clear();
  CHECK(message.size() < 2048);
  CHECK(message.find("\nline 0 xxx") != std::string::npos);
  bool kept = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path()))
    kept = kept || (entry.path().extension() == ".log" && std::filesystem::file_size(entry) == whole);
  CHECK(kept);
}

TEST_CASE("case 101: 10,000 different sizes leave one arena and no more objects") {
  rt::Session session(load(vector_plan_bytes()), rt::Context());
  const std::vector<float> a(10000, 1);
  std::vector<float> y(10000);
  const auto run = [&](std::int64_t n) {
    oclc_session_set_input(session.get(), 0, "a", nullptr);
    oclc_session_set_input(session.get(), 0, "b", nullptr);
    session.set_input(0, "a", a.data(), {n});
    session.set_input(0, "b", a.data(), {n});
    session.set_output(0, "y", y.data(), {n});
    session.run(0);
    REQUIRE(y[static_cast<std::size_t>(n) - 1] == 2 * static_cast<float>(1 + (n - 1) % 4) + 1);
  };
  run(10000);
  const std::uint64_t arena = session.stats().arena_bytes, staging = session.stats().staging_bytes;
  const long objects = failing.objects;
  for (std::int64_t n = 1; n < 10000; ++n) run(n);
  CHECK(session.stats().arena_bytes == arena);
  CHECK(session.stats().staging_bytes <= staging + 3 * 10000 * sizeof(float));
  CHECK(failing.objects <= objects + 3);
}

#if defined(__SSE__)
TEST_CASE("case 109: a caller's rounding and flushing of denormals changes no result and stays") {
  const std::vector<float> expected = make(nullptr).result;
  const unsigned before = _mm_getcsr();
  const unsigned strange = (before & ~0x6000u) | 0x4000u | 0x8040u;  // towards +infinity, denormals are zero and flushed
  _mm_setcsr(strange);
  const std::vector<float> result = make(nullptr).result;
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK(result == expected);
  CHECK((after & ~0x3fu) == (strange & ~0x3fu));
}
#endif

TEST_CASE("case 113: a clock that goes back an hour shows in no time that is told") {
  const rt::Plan plan = load(vector_plan_bytes());
  rt::Session session(plan, rt::Context());
  const std::vector<float> a = {1, 2, 3, 4};
  std::vector<float> y(4);
  std::atomic<bool> done = false;
  std::thread turner([&] {
    while (!done) {
      wall_clock_offset -= 3600;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  std::uint64_t longest = 0;
  for (int i = 0; i < 200; ++i) {
    session.set_input(0, "a", a.data(), {4});
    session.set_input(0, "b", a.data(), {4});
    session.set_output(0, "y", y.data(), {4});
    session.run(0);
    longest = std::max(longest, session.stats().prepare_ns);
  }
  done = true;
  turner.join();
  const std::int64_t turned = wall_clock_offset;
  wall_clock_offset = 0;
  CHECK(turned <= -3600);
  CHECK(longest < 60'000'000'000u);
  CHECK(y == kExpected);
}

}  // namespace faults_test

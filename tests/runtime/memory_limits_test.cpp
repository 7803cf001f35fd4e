// Memory that cannot be had or is not allowed is an error that names its size, from plan and run alike.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "oclc/oclc.hpp"
#include "tests/runtime/error_of.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/plans.h"

using namespace oclc;
using namespace oclc::test;

namespace memory_limits_test {

TEST_CASE("R1, case 105: memory that cannot be had is an error with its size and what needs it") {
  fb::PlanT plan = vector_plan();
  plan.symbols[0]->hi = std::int64_t{1} << 40;
  rt::Session session(load(finish(plan, {1, 2, 3, 4})), rt::Context());
  const std::int64_t n = std::int64_t{1} << 28;
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  float never_read = 0;
  tensor.rank = 1;
  tensor.shape = &n;
  tensor.host = &never_read;
  tensor.bytes = static_cast<std::uint64_t>(n) * 4;
  session.set_input(0, "a", tensor);
  session.set_input(0, "b", tensor);
  // The process gets half of what the arena takes beside what it has.
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit small = before;
  small.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (std::uint64_t{1} << 29);
  REQUIRE(::setrlimit(RLIMIT_AS, &small) == 0);
  const std::string message = error_of([&] { session.prepare(0); }, OCLC_E_MEMORY);
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(message == "the arena takes 1073741824 bytes, which the system refuses: Cannot allocate memory; use a smaller batch");
}

TEST_CASE("a context's limit of memory is kept before anything is allocated, and said by plan and run alike") {
  const rt::Plan plan = load(vector_plan_bytes());
  const oclc_dim n{"N", 1000};
  oclc_memory_info info = plan.memory(0, {n});
  const std::uint64_t needed = info.arena_bytes + info.input_bytes + info.output_bytes + info.constant_bytes + info.state_bytes;
  const auto run = [&](std::uint64_t limit) {
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.memory_limit = limit;
    const rt::Context context(options);
    rt::Session session(plan, context);
    const std::vector<float> x(1000, 1);
    std::vector<float> y(1000);
    session.set_input(0, "a", x.data(), {1000});
    session.set_input(0, "b", x.data(), {1000});
    session.set_output(0, "y", y.data(), {1000});
    session.run(0);
    check_vector_result(x, x, y);
  };
  run(needed);
  CHECK(error_of([&] { run(needed - 1); }, OCLC_E_MEMORY) ==
        "entry point 'predict' takes " + std::to_string(needed) + " bytes with these dimensions (arena " +
            std::to_string(info.arena_bytes) + ", inputs and outputs " + std::to_string(info.input_bytes + info.output_bytes) +
            ", state 0, constants " + std::to_string(info.constant_bytes) + "), the context's limit is " +
            std::to_string(needed - 1) + "; use a smaller batch");
  CHECK(error_of([&] { run(8); }, OCLC_E_MEMORY) == "plan: the plan's constants take 16 bytes, the context's limit is 8");
}

TEST_CASE("sizes that no device has are refused by plan and run alike") {
  fb::PlanT made = vector_plan();
  made.symbols[0]->hi = INT64_MAX;
  const rt::Plan plan = load(finish(made, {1, 2, 3, 4}));
  const std::int64_t n = (std::int64_t{1} << 30) + 1;
  const oclc_dim dim{"N", n};
  const std::string said = error_of([&] { plan.memory(0, {dim}); });
  CHECK(said ==
        "buffer 'a' of entry point 'predict' has 1073741825 elements with these dimensions; a plan for any size has at most "
        "1073741824 in one: compile the model for this size with --dim");
  rt::Session session(plan, rt::Context());
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  float never_read = 0;
  tensor.rank = 1;
  tensor.shape = &n;
  tensor.host = &never_read;
  tensor.bytes = static_cast<std::uint64_t>(n) * 4;
  session.set_input(0, "a", tensor);
  session.set_input(0, "b", tensor);
  CHECK(error_of([&] { session.run(0); }) == said);
}

}  // namespace memory_limits_test

// Plans that are almost right, loaded and run: each is refused with a text or stays within its buffers. OCLC_FUZZ_ROUNDS or
// OCLC_FUZZ_SECONDS, with OCLC_FUZZ_SEED, ask for more of them; tests/fuzz/targets/plans.cpp lets libFuzzer choose.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "oclc/oclc.hpp"
#include "tests/runtime/guarded_run.h"
#include "tests/runtime/original_plans.h"
#include "tests/runtime/plan_mutator.h"

using namespace oclc;
using namespace oclc::test;

namespace mutated_plans_test {

namespace {

// A value of the environment, or `otherwise`.
std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("mutated plans are refused with a text, or run within their buffers") {
  const std::uint64_t seed = setting("OCLC_FUZZ_SEED", 1), seconds = setting("OCLC_FUZZ_SECONDS", 0);
  const std::uint64_t rounds = seconds > 0 ? UINT64_MAX : setting("OCLC_FUZZ_ROUNDS", 1000);
  const std::vector<fb::PlanT> plans = original_plans();
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.memory_limit = 64 << 20;
  options.max_host_steps = 2000;
  const rt::Context context(options);
  RunTally runs;
  std::uint64_t tried = 0, verified = 0, slowest_seed = 0;
  double slowest = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    if (seconds > 0 && start - begin > std::chrono::seconds(seconds)) break;
    PlanMutator random(seed * 1'000'003 + round);
    INFO("OCLC_FUZZ_SEED=" << seed << ", round " << round);
    fb::PlanT plan = plans[static_cast<std::size_t>(random.below(plans.size()))];
    random.mutate(plan);
    ++tried;
    std::vector<std::byte> bytes;
    try {
      bytes = finish(plan, {1, 2, 3, 4});
      ++verified;
    } catch (const package::Error& error) {
      REQUIRE(error.kind() == package::ErrorKind::invalid);
      REQUIRE(std::strlen(error.what()) > 0);
    }
    try {
      const bool whole = bytes.empty() || run_guarded(bytes, context, random, runs);
      REQUIRE(whole);
    } catch (const rt::Error& error) {
      REQUIRE(error.status() != OCLC_E_INTERNAL);
      REQUIRE(std::strlen(error.what()) > 0);
    }
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (took > slowest) slowest = took, slowest_seed = round;
    REQUIRE(took < 5);
  }
  MESSAGE("seed " << seed << ": " << tried << " plans, " << verified << " verified, " << runs.sessions << " sessions, "
                  << runs.runs << " runs, " << runs.good << " of them good; slowest round " << slowest_seed << " took "
                  << slowest << " s");
  CHECK(verified > 0);
  CHECK(runs.good > 0);
}

}  // namespace mutated_plans_test

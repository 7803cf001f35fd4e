// What a context tells of programs that are built.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "oclc/oclc.hpp"
#include "tests/runtime/plans.h"

namespace progress_test {

using namespace oclc;
using namespace oclc::test;

using Calls = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST_CASE("progress begins at none and ends at all, where there is nothing to build it is silent") {
  Calls calls;
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.user = &calls;
  options.progress = [](void* user, std::uint32_t done, std::uint32_t total) {
    static_cast<Calls*>(user)->emplace_back(done, total);
  };
  const rt::Context context(options);
  const std::vector<std::byte> bytes = vector_plan_bytes();
  const rt::Plan plan = rt::Plan::load(bytes.data(), bytes.size());
  const rt::Session first(plan, context);
  REQUIRE(calls.size() >= 2);
  CHECK(calls.front().first == 0);
  CHECK(calls.back().first == calls.back().second);
  for (const auto& [done, total] : calls) {
    CHECK(total > 0);
    CHECK(done <= total);
  }
  const rt::Session second(plan, context);  // shares the kernels of the first
  for (const auto& [done, total] : calls) CHECK(total > 0);
}

}  // namespace progress_test

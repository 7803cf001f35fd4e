// A plan file, loaded and run on an OpenCL that executes nothing, beside memory that is looked at.
#include "tests/fuzz/small_models.h"
#include "tests/fuzz/targets/input.h"
#include "tests/fuzz/targets/plan_file.h"
#include "tests/runtime/guarded_run.h"

namespace {

using namespace oclc;

// Plans by hand, and what the compiler makes of small models.
const std::vector<plan::PlanT>& originals() {
  static const std::vector<plan::PlanT> plans = [] {
    std::vector<plan::PlanT> made = test::original_plans();
    for (unsigned seed = 0; seed < 12; ++seed)
      if (auto plan = fuzz::compiled_graph(seed)) {
        test::take_bodies(*plan);
        made.push_back(std::move(*plan));
      }
    return made;
  }();
  return plans;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ::setenv("OCLC_CACHE", "0", 1);
  ::setenv("OCLC_WAIT_FOR_OPTIMIZED", "1", 1);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room, unsigned seed) {
  return fuzz::mutate_plan_file(data, size, room, seed, originals());
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rt::Context context = [] {
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.memory_limit = 64 << 20;
    options.max_host_steps = 2000;
    return rt::Context(options);
  }();
  test::PlanMutator random(size);
  test::RunTally tally;
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    if (!test::run_guarded({bytes.begin(), bytes.end()}, context, random, tally)) fuzz::found("a byte beside the memory given");
  } catch (const rt::Error& error) {
    if (error.status() == OCLC_E_INTERNAL || !*error.what()) fuzz::found(error.what());
  }
  return 0;
}

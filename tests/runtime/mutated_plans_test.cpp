// Plans that are almost right, loaded and run: each is refused with a text or stays within its buffers. OCLC_FUZZ_ROUNDS or
// OCLC_FUZZ_SECONDS, with OCLC_FUZZ_SEED, ask for more of them; tools/fuzz does, on tests/fake_opencl too.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "oclc/oclc.hpp"
#include "runtime/package/verify/verify.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/plan_mutator.h"
#include "tests/runtime/plans.h"
#include "tests/runtime/string_plan.h"
#include "tests/runtime/train_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace mutated_plans_test {

namespace {

constexpr std::size_t kGuard = 256;
constexpr std::uint8_t kCanary = 0xa5;

// A value of the environment, or `otherwise`.
std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

fb::PlanT unpacked(const std::vector<std::byte>& bytes) {
  fb::PlanT plan;
  package::Package::from_memory(bytes)->plan().UnPackTo(&plan);
  return plan;
}

// Kernels are code, and may do what they like; what is tried here is all the rest: their bodies do nothing.
std::string without_bodies(const std::string& source) {
  std::string out;
  int depth = 0;
  for (const char c : source) {
    if (c == '{' && depth++ == 0) out += "{";
    if (c == '}') --depth;
    if (depth == 0) out += c;
  }
  return out;
}

std::vector<fb::PlanT> originals() {
  std::vector<fb::PlanT> plans;
  plans.push_back(vector_plan());
  plans.push_back(string_plan());
  plans.push_back(train_plan());
  plans.push_back(unpacked(loop_plan_bytes()));
  plans.push_back(unpacked(counter_plan_bytes()));
  plans.push_back(unpacked(two_output_plan_bytes()));
  for (fb::PlanT& plan : plans)
    for (auto& p : plan.programs) {
      std::string source = without_bodies(p->source);
      // Functions that give a value have one.
      for (std::size_t at = 0; (at = source.find("float at(", at)) != source.npos; ++at)
        source.insert(source.find('{', at) + 1, "return 0;");
      p->source = source;
    }
  return plans;
}

// The caller's memory of an input or output, with canaries on both sides.
struct Guarded {
  std::vector<std::uint8_t> bytes;
  explicit Guarded(std::size_t size) : bytes(size + 2 * kGuard, kCanary) {}
  std::uint8_t* data() { return bytes.data() + kGuard; }
  std::size_t size() const { return bytes.size() - 2 * kGuard; }
  bool whole() const {
    const auto untouched = [](std::uint8_t b) { return b == kCanary; };
    return std::all_of(bytes.begin(), bytes.begin() + kGuard, untouched) &&
           std::all_of(bytes.end() - kGuard, bytes.end(), untouched);
  }
};

struct Tally {
  std::uint64_t plans = 0, verified = 0, sessions = 0, runs = 0, good_runs = 0;
  double slowest = 0;
  std::uint64_t slowest_seed = 0;
};

void bind(rt::Session& session, const rt::Plan& plan, std::uint32_t entry, std::vector<std::unique_ptr<Guarded>>& memory) {
  for (const auto& [direction, list] : {std::pair(OCLC_INPUT, plan.inputs(entry)), std::pair(OCLC_OUTPUT, plan.outputs(entry))})
    for (const oclc_binding_info& b : list) {
      std::int64_t shape[32];
      std::uint32_t rank = 0;
      std::uint64_t bytes = 0;
      if (oclc_session_get_shape(session.get(), entry, direction, b.name, shape, 32, &rank, &bytes) != OCLC_OK) continue;
      if (bytes > (1 << 20)) continue;
      memory.push_back(std::make_unique<Guarded>(bytes));
      if (b.dtype == OCLC_STRING) {
        const char* text = "stop";
        for (std::size_t at = 0; at < bytes; at += sizeof text) std::memcpy(memory.back()->data() + at, &text, sizeof text);
      }
      oclc_tensor tensor = OCLC_INIT(oclc_tensor);
      tensor.dtype = b.dtype;
      tensor.rank = rank;
      tensor.shape = shape;
      tensor.host = memory.back()->data();
      tensor.bytes = bytes;
      if (direction == OCLC_INPUT)
        oclc_session_set_input(session.get(), entry, b.name, &tensor);
      else
        oclc_session_set_output(session.get(), entry, b.name, &tensor);
    }
}

void run_all(const std::vector<std::byte>& bytes, const rt::Context& context, PlanMutator& random, Tally& tally) {
  const rt::Plan plan = load(bytes);
  rt::Session session(plan, context);
  ++tally.sessions;
  oclc_session_enable_nan_check(session.get(), random.below(3) == 0);
  for (std::uint32_t entry = 0; entry < plan.info().entry_count; ++entry)
    for (int round = 0; round < 2; ++round) {
      std::vector<std::unique_ptr<Guarded>> memory;
      for (const oclc_binding_info& b : plan.inputs(entry)) oclc_session_set_input(session.get(), entry, b.name, nullptr);
      for (const oclc_symbol_info& s : plan.symbols())
        if (!s.loop_counter) {
          const auto value = static_cast<std::int64_t>(random.below(40));
          oclc_session_bind_dim(session.get(), s.name, std::clamp(value, s.lo, s.hi));
        }
      bind(session, plan, entry, memory);
      ++tally.runs;
      tally.good_runs += oclc_session_run(session.get(), entry) == OCLC_OK;
      for (const auto& m : memory) REQUIRE(m->whole());
      for (const oclc_binding_info& b : plan.outputs(entry)) oclc_session_set_output(session.get(), entry, b.name, nullptr);
    }
}

}  // namespace

TEST_CASE("mutated plans are refused with a text, or run within their buffers") {
  const std::uint64_t seed = setting("OCLC_FUZZ_SEED", 1), seconds = setting("OCLC_FUZZ_SECONDS", 0);
  const std::uint64_t rounds = seconds > 0 ? UINT64_MAX : setting("OCLC_FUZZ_ROUNDS", 1000);
  const std::vector<fb::PlanT> plans = originals();
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.memory_limit = 64 << 20;
  options.max_host_steps = 2000;
  const rt::Context context(options);
  Tally tally;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    if (seconds > 0 && start - begin > std::chrono::seconds(seconds)) break;
    PlanMutator random(seed * 1'000'003 + round);
    INFO("OCLC_FUZZ_SEED=" << seed << ", round " << round);
    fb::PlanT plan = plans[static_cast<std::size_t>(random.below(plans.size()))];
    random.mutate(plan);
    ++tally.plans;
    std::vector<std::byte> bytes;
    try {
      bytes = finish(plan, {1, 2, 3, 4});
      ++tally.verified;
    } catch (const package::Error& error) {
      REQUIRE(error.kind() == package::ErrorKind::invalid);
      REQUIRE(std::strlen(error.what()) > 0);
    }
    try {
      if (!bytes.empty()) run_all(bytes, context, random, tally);
    } catch (const rt::Error& error) {
      REQUIRE(error.status() != OCLC_E_INTERNAL);
      REQUIRE(std::strlen(error.what()) > 0);
    }
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (took > tally.slowest) tally.slowest = took, tally.slowest_seed = round;
    REQUIRE(took < 5);
  }
  MESSAGE("seed " << seed << ": " << tally.plans << " plans, " << tally.verified << " verified, " << tally.sessions
                  << " sessions, " << tally.runs << " runs, " << tally.good_runs << " of them good; slowest round "
                  << tally.slowest_seed << " took " << tally.slowest << " s");
  CHECK(tally.verified > 0);
  CHECK(tally.good_runs > 0);
}

}  // namespace mutated_plans_test

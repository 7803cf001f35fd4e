// Plans that nobody trusts, run on memory that is looked at.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "oclc/oclc.hpp"

namespace oclc::test {

// The caller's memory of an input or output, with canaries on both sides.
struct Guarded {
  static constexpr std::size_t kGuard = 256;
  static constexpr std::uint8_t kCanary = 0xa5;
  std::vector<std::uint8_t> bytes;
  explicit Guarded(std::size_t size) : bytes(size + 2 * kGuard, kCanary) {}
  std::uint8_t* data() { return bytes.data() + kGuard; }
  bool whole() const {
    const auto untouched = [](std::uint8_t b) { return b == kCanary; };
    return std::all_of(bytes.begin(), bytes.begin() + kGuard, untouched) &&
           std::all_of(bytes.end() - kGuard, bytes.end(), untouched);
  }
};

struct RunTally {
  std::uint64_t sessions = 0, runs = 0, good = 0;
};

inline void bind_guarded(rt::Session& session, const rt::Plan& plan, std::uint32_t entry,
                         std::vector<std::unique_ptr<Guarded>>& memory) {
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

// Runs each entry twice, with sizes and settings of `random` (`below(n)`). False: a byte beside an input or output is another
// one now. Throws rt::Error.
template <class Random>
bool run_guarded(const std::vector<std::byte>& bytes, const rt::Context& context, Random& random, RunTally& tally) {
  const rt::Plan plan = rt::Plan::load(bytes.data(), bytes.size());
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
      bind_guarded(session, plan, entry, memory);
      ++tally.runs;
      tally.good += oclc_session_run(session.get(), entry) == OCLC_OK;
      for (const auto& m : memory)
        if (!m->whole()) return false;
      for (const oclc_binding_info& b : plan.outputs(entry)) oclc_session_set_output(session.get(), entry, b.name, nullptr);
    }
  return true;
}

}  // namespace oclc::test

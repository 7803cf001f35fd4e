// Dimensions without an upper bound: what depends on them has memory of its own, behind the step that reads them.
#include <doctest/doctest.h>

#include <algorithm>

#include "runtime/package/memory.h"
#include "runtime/package/verify/verify.h"
#include "tests/package/verify_error.h"
#include "tests/runtime/string_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

constexpr std::uint32_t kLate = 4, kAfter = 5;

// string_plan() whose count is open, then a step that writes as many words into a buffer, and some more to another one whose
// dimension is at most that.
fb::PlanT open_plan() {
  fb::PlanT plan = string_plan();
  plan.symbols[1]->upper = E(std::int64_t{1} << 40).ptr();
  plan.symbols[1]->open = true;
  auto few = symbol("few", 0, 1 << 24, true);
  few->upper = E::symbol(1).ptr();
  plan.symbols.push_back(std::move(few));
  plan.buffers.push_back(arena_buffer("late", E::symbol(1) * 4, 0, 2, 2));
  plan.buffers.push_back(arena_buffer("after", E::symbol(2) * 4, 0, 2, 2));
  for (const auto index : {kLate, kAfter}) plan.buffers[index]->dtype = fb::DType::string_;
  fb::HostT host;
  host.op = "string_normalize";
  host.integers = {1, 2};
  host.texts = {"stop"};
  host.inputs.push_back(operand(reads(1), {E::symbol(1)}));
  host.outputs.push_back(operand(writes(kLate), {E::symbol(1)}));
  host.outputs.push_back(operand(writes(3), {1}));
  auto step = std::make_unique<fb::StepT>();
  step->body.Set(std::move(host));
  plan.entries[0]->steps.push_back(std::move(step));
  return plan;
}

}  // namespace

TEST_CASE("memory that waits for a size is laid out apart") {
  const auto bytes = metadata(open_plan());
  const fb::Plan& plan = package::verify_metadata(bytes, 16);
  const package::Segments segments = package::segments_of(plan, 0);
  CHECK(segments.buffers == std::vector<int>{0, 0, 0, 0, 1, 1});
  CHECK(segments.reads == std::vector<int>{0, 1, 1});
  const std::vector<std::int64_t> unknown{10, 0, 0}, found{10, 3, 0};
  const package::EntryMemory before = package::plan_memory(plan, 0, unknown);
  CHECK(before.sizes[1] == 40);
  CHECK(before.sizes[kLate] == 0);
  const package::EntryMemory late = package::plan_memory(plan, 0, found, 1);
  CHECK(late.sizes[1] == 0);
  CHECK(late.sizes[kLate] == 12);
  CHECK(late.sizes[kAfter] == 12);  // at most as many
  CHECK(late.arena_bytes == 2 * package::kArenaAlignment);
  CHECK(late.offsets[kLate] != late.offsets[kAfter]);
}

TEST_CASE("a buffer is used behind the step that reads its size") {
  CHECK(verify_error(open_plan()) == "");
  fb::PlanT early = open_plan();
  std::swap(early.entries[0]->steps[2], early.entries[0]->steps[3]);
  fb::HostT& words = *early.entries[0]->steps[2]->body.AsHost();
  for (auto* o : {words.inputs[0].get(), words.outputs[0].get()}) o->shape[0] = E(1).ptr();
  CHECK(verify_error(early).find("'late' is used before its size is read") != std::string::npos);
  fb::PlanT bounded = open_plan();
  bounded.symbols[1]->open = false;
  CHECK(verify_error(bounded) == "");
  fb::PlanT without = open_plan();
  without.symbols[1]->upper = nullptr;
  CHECK(verify_error(without).find("symbol 1: is open and has no largest value") != std::string::npos);
  fb::PlanT alias = open_plan();
  alias.buffers[kAfter]->alias = static_cast<int>(kLate);
  CHECK(verify_error(alias).find("known only when the plan runs") != std::string::npos);
}

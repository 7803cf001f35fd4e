// The table of schedule passes, and what runs them.
#include <algorithm>
#include <set>
#include <span>

#include "compiler/support/error.h"
#include "tests/schedule/scheduled.h"

using namespace oclc;
using namespace oclc::test;

namespace {

int ran = 0;

void count(Schedule&, const ScheduleContext&) { ++ran; }
void breaks(Schedule& schedule, const ScheduleContext&) { schedule.entries[0].steps[0] = {KernelStep{99}}; }
bool always(const ScheduleContext&) { return true; }
bool never(const ScheduleContext&) { return false; }

using Needs = SchedulePass::Needs;

int runs_of(const SchedulePass& pass, std::vector<std::string> disabled = {}) {
  Compiled c = compiled_up_to("kernels", kLayer, "cpu");
  ran = 0;
  run_schedule_passes(c.schedule, std::span(&pass, 1), {.target = find_target("cpu"), .disabled = std::move(disabled)});
  return ran;
}

}  // namespace

TEST_CASE("each pass of the table stands behind the one that it names, and says why") {
  std::set<std::string_view> before;
  for (const SchedulePass& pass : schedule_passes()) {
    CHECK_MESSAGE((pass.after.empty() || before.count(pass.after) != 0), pass.name, " stands before ", pass.after);
    CHECK_FALSE(pass.reason.empty());
    before.insert(pass.name);
  }
}

TEST_CASE("a pass runs where it applies, unless it or what it needs is switched off") {
  CHECK(runs_of({"count", count, Needs::nothing, always, "", "-"}) == 1);
  CHECK(runs_of({"count", count, Needs::nothing, never, "", "-"}) == 0);
  CHECK(runs_of({"count", count, Needs::nothing, always, "", "-"}, {"count"}) == 0);
  CHECK(runs_of({"count", count, Needs::nothing, always, "", "-"}, {"fuse", "megakernel"}) == 1);
  CHECK(runs_of({"count", count, Needs::fuse, always, "", "-"}, {"fuse"}) == 0);
  CHECK(runs_of({"count", count, Needs::fuse, always, "", "-"}, {"megakernel"}) == 1);
  CHECK(runs_of({"count", count, Needs::megakernel, always, "", "-"}, {"megakernel"}) == 0);
  CHECK(runs_of({"count", count, Needs::megakernel, always, "", "-"}, {"fuse"}) == 0);
}

TEST_CASE("a pass that leaves a schedule that is not well-formed is an internal error with its name") {
  const SchedulePass pass{"breaks", breaks, Needs::nothing, always, "", "-"};
  Compiled c = compiled_up_to("kernels", kLayer, "cpu");
  ScheduleContext context{.target = find_target("cpu")};
  context.verify_each = true;
  CHECK_THROWS_WITH_AS(run_schedule_passes(c.schedule, std::span(&pass, 1), context),
                       doctest::Contains("after schedule pass breaks: entry g, step 0: is number 99 of 2"), InternalError);
  CHECK_THROWS_WITH_AS(run_schedule_passes(c.schedule, {}, context), doctest::Contains("before the schedule's passes: entry"),
                       InternalError);
}

TEST_CASE("a compilation that stops has what the stages so far made, and nothing behind") {
  const Compiled passes = compiled_up_to("passes", kLayer, "cpu"), kernels = compiled_up_to("kernels", kLayer, "cpu"),
                 code = compiled_up_to("codegen", kLayer, "cpu"), whole = compiled_up_to("", kLayer, "cpu");
  CHECK(passes.schedule.kernels.empty());
  CHECK(kernels.schedule.kernels.size() == 2);
  CHECK(kernels.plan.files.empty());
  CHECK(code.plan.metadata.empty());
  REQUIRE(code.plan.files.size() == whole.plan.files.size());
  for (std::size_t i = 0; i < code.plan.files.size(); ++i) CHECK(code.plan.files[i].source == whole.plan.files[i].source);
}

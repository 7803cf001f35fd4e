// Processes that compile beside the one that runs a plan: which they are given, what happens without them.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "oclc/oclc.hpp"
#include "tests/runtime/cached_run.h"
#include "tests/runtime/temp_dir.h"
#include "tests/runtime/two_steps.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Runs wait for the optimized kernels unless a test says otherwise.
const char* const kWait = "OCLC_WAIT_FOR_OPTIMIZED";

struct Ran {
  std::vector<oclc_build_info> builds;
  std::vector<std::string> names;
  std::vector<std::vector<float>> results;
  std::vector<std::string> messages;
  int helped = 0;  // units that a process built
};

Ran run_entries(const fb::PlanT& plan) {
  Ran ran;
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.message = add_message;
  options.user = &ran.messages;
  const rt::Context context(options);
  const auto bytes = finish(plan);
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
  const std::vector<float> x = {1, 2, 3, 4};
  for (std::uint32_t i = 0; i < plan.entries.size(); ++i) {
    std::vector<float> y(4);
    session.set_input(i, "x", x.data(), {4});
    session.set_output(i, "y", y.data(), {4});
    session.run(i);
    session.run(i);
    ran.results.push_back(y);
  }
  ran.builds = session.builds();
  for (const oclc_build_info& b : ran.builds) {
    ran.names.emplace_back(b.name);
    ran.helped += b.by_builder;
  }
  return ran;
}

bool helps() { return std::string(rt::Context().device().quirks).find("compiles_on_one_core") != std::string::npos; }

using Results = std::vector<std::vector<float>>;
const std::vector<float> kResult = {6, 9, 12, 15};

// A session after its first run, whose result is checked. Its output is gone: it runs no more.
rt::Session answered(const std::vector<std::byte>& plan, const rt::Context& context) {
  rt::Session session(rt::Plan::load(plan.data(), plan.size()), context);
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> y(4);
  session.set_input(0, "x", x.data(), {4});
  session.set_output(0, "y", y.data(), {4});
  session.run(0);
  CHECK(y == kResult);
  return session;
}

}  // namespace

TEST_CASE("steps of a kernel are compiled side by side, and give what one process gives") {
  if (!helps()) return;
  const Setting wait(kWait, "1");
  const std::string name = fresh_name();
  const fb::PlanT plan = plan_of({name});
  {
    const Setting one("OCLC_BUILDERS", "1");
    const Ran cold = run_entries(plan);
    CHECK(cold.results == Results{kResult});
    CHECK(cold.messages.empty());
    CHECK(cold.names == std::vector<std::string>{name + ", steps 0 to 0", name + ", steps 1 to 1"});
    CHECK(cold.helped == 1);
    // Now the driver has all of it on disk, and no process is started.
    const Ran warm = run_entries(plan);
    CHECK(warm.results == Results{kResult});
    CHECK(warm.names == cold.names);
    CHECK(warm.helped == 0);
  }
  const Setting none("OCLC_BUILDERS", "0");
  const Ran alone = run_entries(plan);
  CHECK(alone.results == Results{kResult});
  CHECK(alone.names == std::vector<std::string>{name});
  CHECK(alone.builds[0].text_bytes == 60000);
}

TEST_CASE("where no mark tells of a plan, processes begin at once, and not again") {
  if (!helps()) return;
  const Setting wait(kWait, "1"), one("OCLC_BUILDERS", "1");
  const fb::PlanT plan = plan_of({fresh_name()});
  run_entries(plan);
  CHECK(run_entries(plan).helped == 0);
  // PoCL keeps the folder that it begins with, so that it has all of the plan; marks are looked for where the variable says.
  const TempDir marks;
  const Setting elsewhere("POCL_CACHE_DIR", marks.path().c_str());
  const Ran unknown = run_entries(plan);
  CHECK(unknown.results == Results{kResult});
  CHECK(unknown.helped == 1);
  CHECK(run_entries(plan).helped == 0);
}

TEST_CASE("kernels of another entry point are asked for when it first runs") {
  if (!helps()) return;
  const Setting wait(kWait, "1");
  const Setting one("OCLC_BUILDERS", "1");
  const Ran ran = run_entries(plan_of({fresh_name(), fresh_name()}));
  CHECK(ran.results == Results{kResult, kResult});
  CHECK(ran.messages.empty());
  CHECK(ran.builds.size() == 2);
  CHECK(ran.helped == 1);
}

TEST_CASE("a process that ends before it has compiled anything is told of once, and missed by nobody") {
  if (!helps()) return;
  const Setting wait(kWait, "1");
  const Setting one("OCLC_BUILDERS", "1"), program("OCLC_BUILDER", "/bin/false");
  const Ran ran = run_entries(plan_of({fresh_name(), fresh_name()}));
  CHECK(ran.results == Results{kResult, kResult});
  CHECK(ran.messages ==
        std::vector<std::string>{
            "a process that compiled kernels beside this one has ended; what is left of its work is done in this one"});
}

TEST_CASE("without the builders' program a plan is built in one piece") {
  if (!helps()) return;
  const Setting wait(kWait, "1");
  const Setting one("OCLC_BUILDERS", "1"), program("OCLC_BUILDER", "/nonexistent/oclc-builder");
  const std::string name = fresh_name();
  const Ran ran = run_entries(plan_of({name}));
  CHECK(ran.results == Results{kResult});
  CHECK(ran.messages.empty());
  CHECK(ran.names == std::vector<std::string>{name});
}

TEST_CASE("little text is not worth a process") {
  if (!helps()) return;
  const Setting wait(kWait, "1");
  const Setting one("OCLC_BUILDERS", "1");
  fb::PlanT plan = plan_of({fresh_name()});
  plan.programs[0]->part_bytes = {10000, 10000};
  CHECK(run_entries(plan).names.size() == 1);
}

TEST_CASE("a first run answers with unoptimized kernels, and a later one with the optimized ones") {
  if (!helps()) return;
  const Setting one("OCLC_BUILDERS", "1"), at_once(kWait, nullptr);
  const std::string name = fresh_name();
  const auto bytes = finish(plan_of({name}));
  std::vector<std::string> messages;
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.message = add_message;
  options.user = &messages;
  const std::vector<float> x = {1, 2, 3, 4};
  const auto start = [&](const rt::Context& context) {
    rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
    session.set_input(0, "x", x.data(), {4});
    return session;
  };
  const auto answer = [&](rt::Session& session) {
    std::vector<float> y(4);
    session.set_output(0, "y", y.data(), {4});
    session.run(0);
    return y;
  };
  {
    const rt::Context context(options);
    rt::Session session = start(context);
    CHECK(answer(session) == kResult);
    CHECK(session.stats().unoptimized);
    CHECK(session.stats().optimized_ns == 0);
    rt::Session beside = start(context);  // shares the programs
    CHECK(answer(beside) == kResult);
    for (int i = 0; i < 600 && session.stats().unoptimized; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      CHECK(answer(session) == kResult);
    }
    CHECK_FALSE(session.stats().unoptimized);
    CHECK(session.stats().optimized_ns > 0);
    CHECK(answer(beside) == kResult);
    session.enable_profile(true);
    CHECK(answer(session) == kResult);
    CHECK(session.launches().size() == 2);
  }
  // The driver has them: no start begins with others any more.
  const rt::Context context(options);
  rt::Session session = start(context);
  CHECK(answer(session) == kResult);
  CHECK_FALSE(session.stats().unoptimized);
  CHECK(messages.empty());
}

TEST_CASE("text in one piece is built without optimization first where that saves more than a process takes to begin") {
  if (!helps()) return;
  const Setting one("OCLC_BUILDERS", "1"), at_once(kWait, nullptr);
  for (const std::uint32_t bytes : {6000u, 10000u}) {
    fb::PlanT plan = plan_of({fresh_name()});
    plan.programs[0]->part_bytes = {bytes, bytes};
    const rt::Context context;
    rt::Session session = answered(finish(plan), context);
    CHECK(session.builds().size() == 1);
    CHECK(session.stats().unoptimized == (bytes == 10000));
  }
}

TEST_CASE("who waits for the optimized kernels gets no others") {
  if (!helps()) return;
  const Setting one("OCLC_BUILDERS", "1"), at_once(kWait, nullptr);
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.wait_for_optimized = 1;
  const rt::Context context(options);
  CHECK_FALSE(answered(finish(plan_of({fresh_name()})), context).stats().unoptimized);
}

TEST_CASE("without processes behind, the optimized kernels are compiled here at the second run") {
  if (!helps()) return;
  const Setting one("OCLC_BUILDERS", "1"), program("OCLC_BUILDER", "/bin/false"), at_once(kWait, nullptr);
  const Ran ran = run_entries(plan_of({fresh_name()}));
  CHECK(ran.results == Results{kResult});
  CHECK(ran.messages.size() == 1);
}

namespace {

// PoCL as a driver that compiles all kernels of a build and serializes builds.
const char* const kSerialBuilds = "serial_builds,-compiles_on_one_core";

fb::PlanT whole_programs(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fresh_name());
  fb::PlanT plan = plan_of(names, 300);  // more text than this process builds before the others begin
  for (auto& program : plan.programs) program->part_bytes.clear();
  return plan;
}

}  // namespace

TEST_CASE("whole programs are built in parallel by processes where a driver serializes builds") {
  if (!helps()) return;
  const Setting quirks("OCLC_QUIRKS", kSerialBuilds), wait(kWait, "1");
  const fb::PlanT plan = whole_programs(4);
  {
    const Setting two("OCLC_BUILDERS", "2");
    const Ran ran = run_entries(plan);
    CHECK(ran.results == Results(4, kResult));
    CHECK(ran.messages.empty());
    CHECK(ran.builds.size() == 4);
    CHECK(ran.helped >= 2);
    CHECK(ran.helped < 4);  // this process builds while the others begin
  }
  const Setting none("OCLC_BUILDERS", "0");
  const Ran alone = run_entries(plan);
  CHECK(alone.results == Results(4, kResult));
  CHECK(alone.builds.size() == 1);  // a build costs more than a kernel more in it
  CHECK(alone.helped == 0);
}

TEST_CASE("programs of processes that end early are built here") {
  if (!helps()) return;
  const Setting quirks("OCLC_QUIRKS", kSerialBuilds), wait(kWait, "1");
  const Setting two("OCLC_BUILDERS", "2"), program("OCLC_BUILDER", "/bin/false");
  const Ran ran = run_entries(whole_programs(3));
  CHECK(ran.results == Results(3, kResult));
  CHECK(ran.messages ==
        std::vector<std::string>{
            "a process that compiled kernels beside this one has ended; what is left of its work is done in this one"});
}

namespace {

// Such a driver, whose programs oclc's own cache keeps, and nobody waits.
struct KeepsPrograms {
  const TempDir cache;
  const Setting quirks{"OCLC_QUIRKS", "serial_builds,-compiles_on_one_core,-own_cache"}, at_once{kWait, nullptr},
      folder{"OCLC_CACHE_DIR", cache.path().c_str()};
};

}  // namespace

TEST_CASE("a long launch is answered by the kernels of its parts, which processes build in pieces, until it is built") {
  if (!helps()) return;
  const KeepsPrograms driver;
  const Setting one("OCLC_BUILDERS", "1");
  const std::string name = fresh_name();
  const auto bytes = finish(plan_of_kernels(name));
  const std::vector<float> x = {1, 2, 3, 4};
  const auto names_of = [](rt::Session& session) {
    std::vector<std::string> names;
    for (const oclc_build_info& b : session.builds()) names.emplace_back(b.name);
    return names;
  };
  const std::vector<std::string> whole = {name}, pieces = {name + ", kernels 0 to 0", name + ", kernels 1 to 1"};
  std::vector<float> y(4);
  const auto run = [&](rt::Session& session) {
    std::fill(y.begin(), y.end(), 0.0f);
    session.set_output(0, "y", y.data(), {4});
    session.run(0);
    CHECK(y == kResult);
  };
  const auto start = [&] {
    rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), rt::Context());
    session.set_input(0, "x", x.data(), {4});
    run(session);
    return session;
  };
  {
    rt::Session session = start();
    CHECK(names_of(session) == pieces);
    CHECK(session.builds()[0].by_builder != session.builds()[1].by_builder);
    CHECK(session.stats().unoptimized);
    for (int i = 0; i < 600 && session.stats().unoptimized; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      run(session);
    }
    CHECK_FALSE(session.stats().unoptimized);
    CHECK(session.stats().optimized_ns > 0);
    session.enable_profile(true);
    run(session);
    CHECK(session.launches().size() == 2);
  }
  {
    // What the program cache holds is not cut.
    rt::Session session = start();
    CHECK_FALSE(session.stats().unoptimized);
    CHECK(names_of(session) == whole);
  }
  const TempDir empty;
  const Setting elsewhere("OCLC_CACHE_DIR", empty.path().c_str());
  {
    const Setting wait(kWait, "1");
    rt::Session session = start();
    CHECK_FALSE(session.stats().unoptimized);
    CHECK(names_of(session) == whole);
  }
}

TEST_CASE("a long launch is built as a whole where there are no processes, and a short one always") {
  if (!helps()) return;
  const KeepsPrograms driver;
  fb::PlanT plan = plan_of_kernels(fresh_name(), 10);
  {
    const Setting none("OCLC_BUILDERS", "0");
    CHECK_FALSE(answered(finish(plan), rt::Context()).stats().unoptimized);
  }
  const Setting one("OCLC_BUILDERS", "1");
  CHECK_FALSE(answered(finish(plan_of_kernels(fresh_name(), 10)), rt::Context()).stats().unoptimized);
}

TEST_CASE("a long launch whose parts have one kernel is answered by that") {
  if (!helps()) return;
  const KeepsPrograms driver;
  const Setting one("OCLC_BUILDERS", "1");
  const std::string name = fresh_name();
  fb::PlanT plan = plan_of_kernels(name);
  plan.programs[0]->part_bytes = {60000};
  auto& parts = plan.entries[0]->steps[0]->body.AsLaunch()->parts;
  parts[1]->kernel = parts[0]->kernel;
  const auto bytes = finish(plan);
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), rt::Context());
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> y(4);
  session.set_input(0, "x", x.data(), {4});
  session.set_output(0, "y", y.data(), {4});
  session.run(0);
  CHECK(session.stats().unoptimized);
  CHECK(y == std::vector<float>{2, 3, 4, 5});  // the one step, twice
  REQUIRE(session.builds().size() == 1);
  CHECK(std::string(session.builds()[0].name) == name + ", kernels 0 to 0");
}

TEST_CASE("kernels of parts that a plan's program lacks are told of by name") {
  if (!helps()) return;
  const KeepsPrograms driver;
  const Setting one("OCLC_BUILDERS", "1");
  const std::string name = fresh_name();
  fb::PlanT plan = plan_of_kernels(name);
  auto& parts = plan.entries[0]->steps[0]->body.AsLaunch()->parts;
  std::swap(parts[0]->kernel, parts[1]->kernel);
  std::string text;
  try {
    answered(finish(plan), rt::Context());
  } catch (const std::exception& error) {
    text = error.what();
  }
  CHECK(text == "plan: invalid plan: program '" + name + "' has no kernel '" + name + "_k1'");
}

TEST_CASE("a quirk that nobody knows is refused with those there are") {
  const Setting quirks("OCLC_QUIRKS", "own_cache,serial_build");
  std::string text;
  try {
    const rt::Context context;
  } catch (const std::exception& error) {
    text = error.what();
  }
  CHECK(text.find("OCLC_QUIRKS: no quirk is called 'serial_build'; there are own_cache, ") != std::string::npos);
  CHECK(text.find(", serial_builds") != std::string::npos);
}

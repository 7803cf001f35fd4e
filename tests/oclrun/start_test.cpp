// What a start takes, and what later ones find.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "oclc/oclc.hpp"
#include "tests/process.h"
#include "tests/runtime/plans.h"
#include "tests/runtime/two_steps.h"

using namespace oclc;
using namespace oclc::test;
using nlohmann::json;

namespace {

const std::string kStartOclrun = std::string(OCLC_BINARY_DIR) + "/bin/oclrun ";

struct StartFixture {
  Folder folder;
  std::string plan = (folder.path / "plan.bin").string();
  explicit StartFixture(const std::vector<std::byte>& bytes) {
    folder.add("plan.bin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  // With caches of its own.
  Outcome run(const std::string& arguments) const {
    const std::string caches = folder.path.string();
    return test::run("mkdir -p " + caches + "/pocl; POCL_CACHE_DIR=" + caches + "/pocl OCLC_CACHE=1 OCLC_CACHE_DIR=" + caches +
                     "/oclc " + kStartOclrun + plan + " " + arguments);
  }
};

}  // namespace

TEST_CASE("--explain-start tells where the time to the first results went") {
  const StartFixture f(vector_plan_bytes());
  const Outcome text = f.run("--dim N=3 --random --explain-start");
  CHECK(text.status == 0);
  for (const char* part :
       {"start on ", "time ms   processor ms", "  plan\n", "  context\n", "  session\n", "programs: 1 built, 0 from",
        "      vector: 0.5 KB of text, 3 kernels\n", "constants\n", "  first run\n", "  second run\n",
        "kernels compiled when they first run\n", "to the first results\n"})
    CHECK_MESSAGE(text.text.find(part) != std::string::npos, part << " in " << text.text);
  const json start = json::parse(f.run("--dim N=3 --random --explain-start --json -q").text)["start"];
  REQUIRE(start["builds"].size() == 1);
  CHECK(start["builds"][0]["program"] == "vector");
  CHECK(start["builds"][0]["cached"] == true);
  CHECK(start["builds"][0]["kernels"] == 3);
  double sum = 0;
  for (const json& span : start["spans"])
    if (span["what"] != "second run") sum += span["ms"].get<double>();
  CHECK(start["first_result_ms"].get<double>() == doctest::Approx(sum));
  CHECK(start["processor_ms"].get<double>() > 0);
  const std::string profile = f.run("--dim N=3 --random --profile=json --runs 1 -q").text;
  CHECK(json::parse(profile.substr(0, profile.rfind("latency_ms")))["start"]["builds"].size() == 1);
}

TEST_CASE("--warm leaves nothing to compile, and asks for no inputs") {
  const StartFixture f(vector_plan_bytes());
  const Outcome warm = f.run("--warm --dim N=4");
  CHECK(warm.status == 0);
  CHECK(warm.text == "oclrun: note: ran predict with N=4; their programs and kernels are in the cache\n");
  CHECK(f.run("--dim N=3 --random -v").text.find("(0 built, 1 from the cache)") != std::string::npos);
  // Dimensions that are not given are as small as may be.
  CHECK(f.run("--warm").text == "oclrun: note: ran predict with N=0; their programs and kernels are in the cache\n");
  const Outcome unknown = f.run("--warm --entry absent");
  CHECK(unknown.status == 2);
  CHECK(unknown.text.find("has no entry point 'absent'") != std::string::npos);
}

TEST_CASE("a start that waits for optimized kernels gives what one that does not gives, and what is timed waits") {
  if (std::string(rt::Context().device().quirks).find("compiles_on_one_core") == std::string::npos) return;
  const StartFixture f(finish(plan_of({fresh_name()})));
  // Each with PoCL's cache empty.
  const auto cold = [&](const std::string& name, const std::string& arguments) {
    const std::string cache = (f.folder.path / name).string();
    return test::run("mkdir " + cache + "; unset OCLC_WAIT_FOR_OPTIMIZED; OCLC_BUILDERS=1 POCL_CACHE_DIR=" + cache + " " +
                     kStartOclrun + f.plan + " --entry entry0 --random -q " + arguments);
  };
  const std::string until = "runs until the optimized kernels are compiled";
  const Outcome at_once = cold("at_once", "--print --explain-start"), waited = cold("waited", "--print --wait-for-optimized");
  CHECK(at_once.status == 0);
  CHECK(at_once.text.find(until) != std::string::npos);
  CHECK(waited.status == 0);
  CHECK(at_once.text.find(waited.text) != std::string::npos);
  const json timed = json::parse(cold("timed", "--runs 1 --json --explain-start").text)["start"];
  CHECK(timed["optimized_ms"] == 0);
  for (const json& span : timed["spans"]) CHECK(span["what"] != until);
}

TEST_CASE("processes that start at once with empty caches give what one gives, without a note") {
  if (std::string(rt::Context().device().quirks).find("compiles_on_one_core") == std::string::npos) return;
  const StartFixture f(finish(plan_of({fresh_name()})));
  const auto start = [&](const std::string& caches, const std::string& to) {
    return "OCLC_BUILDERS=1 POCL_CACHE_DIR=" + caches + " OCLC_CACHE=1 OCLC_CACHE_DIR=" + caches + "/oclc " + kStartOclrun +
           f.plan + " --entry entry0 --random=1 --print >" + to + " 2>&1";
  };
  const std::string folder = f.folder.path.string(), alone = folder + "/alone", shared = folder + "/shared";
  const Outcome one = test::run("mkdir " + alone + "; " + start(alone, folder + "/one.txt") + "; cat " + folder + "/one.txt");
  CHECK(one.status == 0);
  CHECK(one.text.find("note") == std::string::npos);
  const Outcome several = test::run("mkdir " + shared + "; " + start(shared, folder + "/a.txt") + " & " +
                                    start(shared, folder + "/b.txt") + " & " + start(shared, folder + "/c.txt") +
                                    "; wait; cd " + folder + "; cmp one.txt a.txt && cmp one.txt b.txt && cmp one.txt c.txt");
  CHECK(several.status == 0);
  CHECK(several.text.empty());
}

TEST_CASE("a plan with binaries compiles nothing under --use-binaries, whoever wrote them") {
  const StartFixture f(vector_plan_bytes());
  const std::string with = (f.folder.path / "with.bin").string();
  const Outcome written = f.run("--write-binaries " + with + " --dim N=4");
  CHECK(written.status == 0);
  CHECK(written.text ==
        "oclrun: note: ran predict with N=4; their programs and kernels are in the cache; their binaries are in '" + with +
            "'\n");
  // With caches that are empty.
  const std::string caches = (f.folder.path / "empty").string();
  const auto start = [&](const std::string& options) {
    return test::run("mkdir -p " + caches + "; POCL_CACHE_DIR=" + caches + " OCLC_CACHE=0 " + kStartOclrun + with +
                     " --use-binaries --dim N=3 --random " + options);
  };
  const Outcome run = start("-v");
  CHECK(run.status == 0);
  CHECK_MESSAGE(run.text.find("(0 built, 0 from the cache, 1 from the plan)") != std::string::npos, run.text);
  const std::string explained = start("--explain-start").text;
  for (const char* part : {"programs: 0 built, 0 from oclc's cache, 1 from the plan\n", ", 3 kernels, from the plan\n"})
    CHECK_MESSAGE(explained.find(part) != std::string::npos, part << " in " << explained);
  const json build = json::parse(start("--explain-start --json -q").text)["start"]["builds"].at(0);
  CHECK(build["from_plan"] == true);
  CHECK(build["cached"] == false);
}

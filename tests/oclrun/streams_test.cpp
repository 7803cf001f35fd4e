// oclrun --streams and --batch-sweep: throughput of several sessions, and of several sizes.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/process.h"
#include "tests/runtime/plans.h"

namespace streams_test {

using namespace oclc::test;
using nlohmann::json;

const std::string kOclrun = std::string(OCLC_BINARY_DIR) + "/bin/oclrun ";

struct Vectors {
  Folder folder;
  Vectors() {
    const std::vector<std::byte> bytes = vector_plan_bytes();
    folder.add("plan.bin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  Outcome run(const std::string& arguments) const {
    return test::run(kOclrun + (folder.path / "plan.bin").string() + " --device cpu " + arguments);
  }
};

TEST_CASE("--streams counts the runs of one session and of several, and what that gains") {
  const Vectors vectors;
  const Outcome o = vectors.run("--random --dim N=1000 --streams 3 --runs 20 --json");
  REQUIRE_MESSAGE(o.status == 0, o.text);
  const json rows = json::parse(o.text).at("streams");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["streams"] == 1);
  CHECK(rows[0]["latency_ms"]["runs"] == 20);
  CHECK(rows[0]["scaling"] == 1);
  CHECK(rows[1]["streams"] == 3);
  CHECK(rows[1]["latency_ms"]["runs"] == 60);
  const double alone = rows[0]["runs_per_s"], together = rows[1]["runs_per_s"];
  CHECK(together * rows[1]["seconds"].get<double>() == doctest::Approx(60));
  CHECK(rows[1]["scaling"].get<double>() == doctest::Approx(together / alone));
  CHECK_FALSE(rows[0].contains("size"));
}

TEST_CASE("--batch-sweep has a row for each size, in the order given, and counts elements") {
  const Vectors vectors;
  const Outcome o = vectors.run("--random --batch-sweep N=4,100000,8 --runs 5");
  REQUIRE_MESSAGE(o.status == 0, o.text);
  CHECK(o.text.starts_with("size     streams     runs/s        N/s    p50 ms    p90 ms    p99 ms  scaling\n"));
  CHECK(std::regex_search(o.text, std::regex("\nN=4 +1 [^\n]*\nN=100000 +1 [^\n]*\nN=8 +1 [^\n]*\n$")));
  const Outcome both = vectors.run("--random --batch-sweep N=2,3 --streams 2 --time 0.05 --json");
  REQUIRE_MESSAGE(both.status == 0, both.text);
  const json rows = json::parse(both.text).at("streams");
  REQUIRE(rows.size() == 4);
  CHECK(rows[3]["size"] == "N=3");
  CHECK(rows[3]["streams"] == 2);
  CHECK(rows[3]["seconds"].get<double>() >= 0.05);
}

TEST_CASE("what does not go with throughput is said") {
  const Vectors vectors;
  const auto refusal = [&](const std::string& arguments) {
    const Outcome o = vectors.run(arguments);
    CHECK(o.status == 2);
    return o.text;
  };
  CHECK(refusal("--random --streams 0") ==
        "oclrun: error: --streams: wanted a number from 1 to 64, found '0'; see oclrun --help\n");
  CHECK(refusal("--random --batch-sweep N=1,x") ==
        "oclrun: error: --batch-sweep: wanted NAME=SIZE,SIZE,.. with sizes above 0, found 'N=1,x'; see oclrun --help\n");
  CHECK(refusal("--random --batch-sweep N=") ==
        "oclrun: error: --batch-sweep: wanted NAME=VALUE, found 'N='; see oclrun --help\n");
  CHECK(refusal("--random --batch-sweep N=1 --dim N=2") ==
        "oclrun: error: --batch-sweep gives dimension 'N' its sizes: leave --dim N out; see oclrun --help\n");
  CHECK(refusal("--random --batch-sweep M=1") == "oclrun: error: the plan has no dimension 'M'; it has: N\n");
  CHECK(refusal("--random --dim N=1 --streams 2 --profile") ==
        "oclrun: error: --streams does not go with --profile or --trace; see oclrun --help\n");
  CHECK(refusal("--random --batch-sweep N=1 --print") ==
        "oclrun: error: --batch-sweep does not go with --output or --print; see oclrun --help\n");
  CHECK(refusal("--streams 2") ==
        "oclrun: error: input 'a' [N] has no value: give --input a=FILE, --inputs DIR or --random; see oclrun --help\n");
}

}  // namespace streams_test

// oclc tune on the embedded default device, and what a compilation takes from its database.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/cli/cli.h"

namespace {

using namespace oclc::test;
using nlohmann::json;

const std::string kTune = "tune --device cpu --progress none ";

TEST_CASE("products are timed, kept, found again, exported and imported") {
  const Folder folder;
  const std::string db = (folder.path / "t.db").string(), lines = (folder.path / "t.jsonl").string(),
                    copy = (folder.path / "copy.db").string();
  const Outcome first = oclc_stdout(kTune + "--json --product 9x16x40 --product 5x8x20 --trials 14 --db " + db);
  REQUIRE(first.status == 0);
  const json report = json::parse(first.text);
  REQUIRE(report["operators"].size() == 2);
  for (const json& row : report["operators"]) {
    CHECK(row["trials"] == 14);
    CHECK(row["estimate_ms"].get<double>() > 0);
    CHECK(row["known"] == 0);
    CHECK(row["best_ms"].get<double>() > 0);
    CHECK(row["best_ms"].get<double>() <= row["model_ms"].get<double>());
  }
  CHECK(report["median_ratio"].get<double>() >= 1);
  const json second = json::parse(oclc_stdout(kTune + "--json --product 9x16x40 --trials 1 --db " + db).text);
  CHECK(second["operators"][0]["known"] > 1);
  const json loose =
      json::parse(oclc_stdout(kTune + "--compare-with-first --json --product 9x16x40 --trials 2 --db " + copy).text);
  CHECK(loose["operators"][0]["best_ms"].get<double>() > 0);
  CHECK(loose["worst_ratio"].get<double>() >= loose["median_ratio"].get<double>());
  std::filesystem::remove(copy);
  const Outcome text = run_oclc(kTune + "--product 9x16x40 --trials 1 --db " + db);
  CHECK(has(text.text, "what the cost model takes is"));
  CHECK(run_oclc(kTune + "--db " + db + " --export " + lines).status == 0);
  CHECK(run_oclc(kTune + "--db " + copy + " --import " + lines).status == 0);
  CHECK(oclc_stdout(kTune + "--db " + db + " --export -").text == oclc_stdout(kTune + "--db " + copy + " --export -").text);
  CHECK(has(read_bytes(lines), "\"key\":\"cpu_tiles 1 9 40 16 "));
  CHECK(has(read_bytes(lines), "\"key\":\"row_fp32 1 9 40 16 1 1 "));
}

TEST_CASE("a device's rates are measured beside its row's, kept, and taken for estimates") {
  const ModelFolder folder;
  const std::string db = folder.at("t.db"), compile = folder.model() + " --device cpu --dim N=2 -v -o " + folder.at("p.bin");
  const Outcome measured = oclc_stdout(kTune + "--calibrate --json --db " + db);
  REQUIRE(measured.status == 0);
  const json rows = json::parse(measured.text)["rows"];
  REQUIRE(rows.size() == 4);
  for (const json& row : rows) {
    CHECK(row["note"] == "");
    CHECK(row["measured"].get<double>() > 0);
    CHECK(row["table"].get<double>() > 0);
  }
  CHECK(rows[0]["name"] == "flops");
  CHECK(json::parse(measured.text)["kernel_times"].empty());
  const Outcome with = run_oclc(compile + " --tuned " + db);
  CHECK(with.status == 0);
  CHECK(has(with.text, "0 tuned choices for"));  // rates are no choices
  CHECK_FALSE(has(with.text, "too far from the target's row"));
  CHECK(has(oclc_stdout(kTune + "--db " + db + " --export -").text, "\"key\":\"cost flops\""));
}

TEST_CASE("kernel times are fitted to contractions, kept, and taken for estimates") {
  const Folder folder;
  const std::string db = (folder.path / "t.db").string(), product = "--json --product 9x16x40 --trials 1 --db " + db;
  const json before = json::parse(oclc_stdout(kTune + product).text)["operators"][0];
  REQUIRE(before["kernels"].size() == 1);
  CHECK(before["kernels"][0]["flops"] == 2.0 * 9 * 16 * 40);
  CHECK(before["estimate_ms"] == before["kernels"][0]["estimate_ms"]);
  const Outcome measured = oclc_stdout(kTune + "--calibrate --sweep 8 --seed 5 --json --db " + db);
  REQUIRE(measured.status == 0);
  const json kinds = json::parse(measured.text)["kernel_times"];
  REQUIRE_FALSE(kinds.empty());
  int kernels = 0;
  for (const json& row : kinds) kernels += row["kernels"].get<int>();
  CHECK(kernels >= 8);
  CHECK(has(oclc_stdout(kTune + "--db " + db + " --export -").text, "\"key\":\"cost kernel "));
  CHECK(json::parse(oclc_stdout(kTune + product).text)["operators"][0]["estimate_ms"].get<double>() > 0);
}

TEST_CASE("a model is tuned, and compiled with what was found") {
  const ModelFolder folder;
  const std::string db = folder.at("t.db");
  const Outcome tuned = run_oclc(kTune + folder.model() + " --dim N=2 --trials 5 --db " + db);
  CHECK(tuned.status == 0);
  CHECK(has(tuned.text, "conv f32[2, 2, 4, 4] x f32[3, 2, 1, 1] (stem.conv)"));
  const std::string compile = folder.model() + " --device cpu --dim N=2 -v -o " + folder.at("p.bin");
  const Outcome with = run_oclc(compile + " --tuned " + db);
  CHECK(with.status == 0);
  CHECK(has(with.text, "tuned choices for"));
  // The same choices give the same bytes.
  const std::string before = read_bytes(folder.at("p.bin"));
  REQUIRE(run_oclc(compile + " --tuned " + db).status == 0);
  CHECK(read_bytes(folder.at("p.bin")) == before);
}

TEST_CASE("case 80: a database that cannot be used") {
  const ModelFolder folder;
  const std::string compile = folder.model() + " --target cpu -o " + folder.at("p.bin") + " --tuned " + folder.at("t.db");
  const Outcome missing = run_oclc(compile);
  CHECK(missing.status == 6);
  CHECK(has(missing.text, "t.db' to be a database of tuned choices, found no such file; oclc tune makes one"));
  folder.add("t.db", std::string(5000, 'x'));
  const Outcome damaged = run_oclc(compile);
  CHECK(damaged.status == 0);
  CHECK(has(damaged.text, "no tuned choices"));
  const Outcome anew = run_oclc(kTune + "--product 4x4x4 --trials 1 --db " + folder.at("t.db"));
  CHECK(anew.status == 0);
  CHECK(std::filesystem::exists(folder.at("t.db.bad")));
  CHECK(run_oclc(kTune + "--product 4x4x4").status == 2);
  CHECK(run_oclc(kTune + "--db " + folder.at("t.db")).status == 2);
  CHECK(run_oclc(kTune + "--product 4x4 --db " + folder.at("t.db")).status == 2);
  folder.add("bad.jsonl", "{\"schema\": 1}\n");
  const Outcome bad = run_oclc(kTune + "--db " + folder.at("t.db") + " --import " + folder.at("bad.jsonl"));
  CHECK(bad.status == 3);
  CHECK(has(bad.text, "line 1 of '" + folder.at("bad.jsonl") + "'"));
}

TEST_CASE("case 81: Ctrl-C ends a search, and the next one goes on") {
  const Folder folder;
  const std::string db = (folder.path / "t.db").string();
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout)) ::_exit(1);
    ::execl(kOclc.c_str(), "oclc", "tune", "--device", "cpu", "--progress", "none", "--product", "33x64x96", "--db", db.c_str(),
            static_cast<char*>(nullptr));
    ::_exit(1);
  }
  const auto kept = [&] {
    const std::string text = oclc_stdout(kTune + "--db " + db + " --export -").text;
    return std::count(text.begin(), text.end(), '\n');
  };
  for (int i = 0; i < 600 && kept() < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  REQUIRE(::kill(child, SIGINT) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  const auto before = kept();
  CHECK(before >= 3);
  const json next = json::parse(oclc_stdout(kTune + "--json --product 33x64x96 --trials 1 --db " + db).text);
  CHECK(next["operators"][0]["known"].get<std::int64_t>() >= before - 1);
}

}  // namespace

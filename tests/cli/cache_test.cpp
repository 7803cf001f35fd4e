#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/process.h"

using namespace oclc::test;
using nlohmann::json;

namespace {

const std::string kCache = std::string(OCLC_BINARY_DIR) + "/bin/oclc cache ";

}  // namespace

TEST_CASE("oclc cache lists, prunes and clears a folder, and leaves what is not the cache's") {
  Folder folder;
  folder.add("0011223344556677.bin", "not a binary");
  folder.add("0011223344556677.log", "what the compiler said");
  folder.add("plan.bin", "mine");
  const std::string where = " --folder " + folder.path.string();
  run("touch -d '10 days ago' " + (folder.path / "0011223344556677.log").string());
  const Outcome list = run(kCache + "list" + where);
  CHECK(list.status == 0);
  CHECK(list.text.find("0011223344556677.bin  damaged\n") != std::string::npos);
  CHECK(list.text.find("0011223344556677.log  of a build that failed\n") != std::string::npos);
  CHECK(list.text.ends_with("2 files, 0.0 MB in " + folder.path.string() + "\n"));
  const json entries = json::parse(run(kCache + "list --json" + where).text)["entries"];
  REQUIRE(entries.size() == 2);
  CHECK(entries[0]["damaged"] == true);
  CHECK(entries[1]["binary"] == false);

  CHECK(run(kCache + "prune --older-than 11" + where).text == "removed 0 files, 0.0 MB, from " + folder.path.string() + "\n");
  CHECK(run(kCache + "prune --older-than 9" + where).text == "removed 1 files, 0.0 MB, from " + folder.path.string() + "\n");
  CHECK(run(kCache + "clear" + where).text == "removed 1 files, 0.0 MB, from " + folder.path.string() + "\n");
  CHECK(run(kCache + "list" + where).text == "0 files, 0.0 MB in " + folder.path.string() + "\n");
  CHECK(std::filesystem::exists(folder.path / "plan.bin"));
}

TEST_CASE("oclc cache without a folder, or with an unknown verb, says what is wanted") {
  const Outcome none = run("env -u OCLC_CACHE_DIR -u XDG_CACHE_HOME -u HOME " + kCache + "list");
  CHECK(none.status == 6);
  CHECK(none.text == "oclc: error: neither OCLC_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder for the program cache\n");
  const Outcome verb = run(kCache + "empty");
  CHECK(verb.status == 2);
  CHECK(verb.text == "oclc: error: wanted oclc cache list, prune or clear, found 'empty'; see oclc --help\n");
}

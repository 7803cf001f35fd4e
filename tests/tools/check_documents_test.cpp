// tools/check_documents on small trees: which names in documents it lets through and which it prints.
#include <doctest/doctest.h>

#include <string>

#include "tests/process.h"

namespace {

using oclc::test::Folder;
using oclc::test::Outcome;

constexpr const char* kIndex = "# Choices\n\n- [Arena](memory.md#arena-offsets)\n";
constexpr const char* kChoice = "# Choices: memory\n\n## Arena offsets\nChosen.\nCode: `arena.cpp`\n";

// What is printed before the last line for a tree whose documents name the rest of it right but for `file`.
std::string verdict_on(const std::string& file, const std::string& text) {
  const Folder tree;
  tree.add("arena.cpp", "");
  tree.add("docs/choices/README.md", kIndex);
  tree.add("docs/choices/memory.md", kChoice);
  tree.add(file, text);
  const Outcome outcome = oclc::test::run(OCLC_SOURCE_DIR "/tools/check_documents " + tree.path.string());
  const std::size_t last = outcome.text.find("check_documents: ");
  CHECK((outcome.status == 0) == (last == 0));
  return outcome.text.substr(0, last);
}

}  // namespace

TEST_CASE("documents that name what is there pass") {
  CHECK(verdict_on("docs/a.md",
                   "# A\n[up](../arena.cpp) [web](https://a.b/c) [here](#a) [choice](choices/memory.md#arena-offsets)\n") ==
        "");
  CHECK(verdict_on("docs/a.md", "    [in code](nowhere.md)\n```\n[in a fence](nowhere.md)\n```\n") == "");
}

TEST_CASE("links that lead nowhere are printed with their place") {
  CHECK(verdict_on("docs/a.md", "# A\n[b](b.md)\n") == "docs/a.md:2: the link leads nowhere: b.md\n");
  CHECK(verdict_on("docs/a.md", "# A\n[b](#b)\n") == "docs/a.md:2: no such heading: #b\n");
  CHECK(verdict_on("docs/a.md", "[c](choices/memory.md#free-lists)\n") ==
        "docs/a.md:1: no such heading: choices/memory.md#free-lists\n");
}

TEST_CASE("a choice names files that exist") {
  CHECK(verdict_on("docs/choices/memory.md", "## Arena offsets\nCode: `arena.cpp`,\n`heap.cpp`\n") ==
        "docs/choices/memory.md:3: no such file: heap.cpp\n");
  CHECK(verdict_on("docs/choices/memory.md", "## Arena offsets\nChosen.\n") ==
        "docs/choices/memory.md:1: the choice names no file: wanted a line `Code: `path`, ..`\n");
}

TEST_CASE("a choice stands in the index") {
  CHECK(verdict_on("docs/choices/README.md", "# Choices\n") ==
        "docs/choices/memory.md:3: the choice is missing in docs/choices/README.md\n");
}

TEST_CASE("a tree without documents is an error, not a success") {
  CHECK(oclc::test::run(OCLC_SOURCE_DIR "/tools/check_documents " + Folder().path.string()).status == 2);
}

TEST_CASE("each row of the table of faults names tests that exist, and numbered tests stand in it") {
  const std::string test = "TEST_CASE(\"case 2: a file\") {}\nTEST_CASE(\"a bystander\") {}\n";
  const auto verdict = [&](const std::string& rows) {
    const Folder tree;
    tree.add("docs/choices/README.md", "# Choices\n");
    tree.add("tests/errors/a_test.cpp", test);
    tree.add("tests/CMakeLists.txt", "add_test(NAME \"fuzz: much\" COMMAND x)\n");
    tree.add("tests/faults.md", rows);
    const Outcome outcome = oclc::test::run(OCLC_SOURCE_DIR "/tools/check_documents " + tree.path.string());
    return outcome.text.substr(0, outcome.text.find("check_documents: "));
  };
  const std::string first = "| 1 | a | `fuzz: much`, `errors: a bystander` |\n",
                    second = "| 2 | b | `errors: case 2: a file` |\n";
  CHECK(verdict(first + second) == "");
  CHECK(verdict(first + "| 2 | b | `errors: case 2: a folder`, `errors: case 2: a file` |\n") ==
        "tests/faults.md:2: no such test: errors: case 2: a folder\n");
  CHECK(verdict(first + "| 3 | b | `errors: case 2: a file` |\n") ==
        "tests/faults.md:2: wanted row 2, found row 3\n"
        "tests/errors/a_test.cpp:1: the test stands in no row 2 of tests/faults.md: errors: case 2: a file\n");
  CHECK(verdict(first + second + "| 3 | c | none |\n") == "tests/faults.md:3: row 3 names no test\n");
}

TEST_CASE("an environment variable that the code asks for has a line in the guide") {
  CHECK(verdict_on("runtime/a.cpp", "const char* wish = std::getenv(\"OCLC_WISH\");\n") ==
        "runtime/a.cpp:1: the environment variable OCLC_WISH has no line in docs/guides/troubleshooting.md\n");
  CHECK(verdict_on("runtime/a.cpp", "const char* wish = std::getenv(name);\n") == "");
}

TEST_CASE("a test with a semicolon in its name is told of, which ctest would not run") {
  CHECK(verdict_on("tests/errors/a_test.cpp", "TEST_CASE(\"one; two\") {}\n") ==
        "tests/errors/a_test.cpp:1: ctest cannot run a test with a semicolon in its name: TEST_CASE(\"one; two\"\n");
  CHECK(verdict_on("tests/errors/a_test.cpp", "TEST_CASE(\"one, two\") { f(\";\"); }\n") == "");
}

#include <doctest/doctest.h>

#include "tests/process.h"
#include "tests/runtime/plans.h"

using namespace oclc::test;

namespace {

// A plan that doubles four numbers.
std::string plan_in(const Folder& folder) {
  const auto bytes = two_output_plan_bytes();
  folder.add("plan.bin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return (folder.path / "plan.bin").string();
}

}  // namespace

TEST_CASE("an installed oclc is found by CMake, pkg-config and plain cc, from C and C++") {
  const Folder folder;
  const Outcome o =
      run(std::string(OCLC_SOURCE_DIR) + "/tests/consumer/project/check " + OCLC_BINARY_DIR + " " + plan_in(folder));
  CAPTURE(o.text);
  CHECK(o.status == 0);
  CHECK(o.text == "consumers: found the installed package, built and ran\n");
}

TEST_CASE("oclc is a part of another project, whole, and as the runtime alone without the compiler's packages") {
  const Folder folder;
  const Outcome o =
      run(std::string(OCLC_SOURCE_DIR) + "/tests/consumer/subproject/check " + OCLC_SOURCE_DIR + " " + plan_in(folder));
  CAPTURE(o.text);
  CHECK(o.status == 0);
  CHECK(o.text.find("subproject: configured whole, built and ran with the runtime alone\n") != std::string::npos);
}

TEST_CASE("the archive of cpack runs from any folder and brings what it links") {
  const Outcome o = run(std::string(OCLC_SOURCE_DIR) + "/tests/consumer/archive/check " + OCLC_BINARY_DIR + " " +
                        OCLC_SOURCE_DIR + "/examples/digits");
  CAPTURE(o.text);
  CHECK(o.status == 0);
  CHECK(o.text.find("verify: PASS") != std::string::npos);
  CHECK(o.text.ends_with("archive: unpacked elsewhere, complete, compiled and ran\n"));
}

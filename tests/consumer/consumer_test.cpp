#include <doctest/doctest.h>

#include "tests/process.h"
#include "tests/runtime/plans.h"

using namespace oclc::test;

TEST_CASE("an installed oclc is found by CMake, pkg-config and plain cc, from C and C++") {
  const Folder folder;
  const auto bytes = two_output_plan_bytes();
  folder.add("plan.bin", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const Outcome o = run(std::string(OCLC_SOURCE_DIR) + "/tests/consumer/project/check " + OCLC_BINARY_DIR + " " +
                        (folder.path / "plan.bin").string());
  CAPTURE(o.text);
  CHECK(o.status == 0);
  CHECK(o.text == "consumers: found the installed package, built and ran\n");
}

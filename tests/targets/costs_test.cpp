// Rows of costs.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "compiler/targets/costs.h"
#include "compiler/targets/target.h"

using namespace oclc;

TEST_CASE("each cost has a name of its own and says for what, in what, where, when and by what it was measured") {
  std::set<std::string_view> names;
  const std::regex date("2026-[01][0-9]-[0-3][0-9]");
  const std::set<std::string_view> families = {"cpu", "gpu", "h200", "any"};
  for (const CostRow& row : cost_rows()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(families.count(row.family) == 1);
    CHECK(row.value > 0);
    CHECK_FALSE(row.unit.empty());
    CHECK_FALSE(row.machine.empty());
    CHECK(std::regex_match(std::string(row.date), date));
    CHECK(row.command.starts_with("oclc"));
  }
  CHECK(names.size() > 60);
}

TEST_CASE("a gain is a share of the old time") {
  for (const CostRow& row : cost_rows()) {
    CAPTURE(row.name);
    if (row.unit == "gain") CHECK(row.value < 1);
  }
}

TEST_CASE("fusion weighs a launch by the target's row") {
  CHECK(fusion_costs(find_target("cpu")).launch_bytes == cost::kCoreFusionLaunchBytes);
  CHECK(fusion_costs(find_target("h200")).launch_bytes == cost::kGroupFusionLaunchBytes);
  // Less than what memory moves meanwhile, on every target.
  for (const Target& t : target_rows()) CHECK(fusion_costs(t).launch_bytes < t.launch_seconds * t.bytes_per_second);
}

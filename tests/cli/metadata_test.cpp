// What a plan keeps of its model.
#include "tests/cli/cli.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("--metadata and a model's own properties are in the plan, and oclc info shows them") {
  const ModelFolder m;
  const Outcome compiled = run_oclc(m.model() + " --target cpu -o " + m.at("plan.bin") +
                                    " --metadata author=A=B --metadata note=first --metadata note=last");
  REQUIRE(compiled.status == 0);
  const Outcome shown = run_oclc("info " + m.at("plan.bin"));
  CHECK(has(shown.text, "property author: A=B\n"));
  CHECK(has(shown.text, "property note: last\n"));
  const auto json = nlohmann::json::parse(oclc_stdout("info --json " + m.at("plan.bin")).text);
  CHECK(json["metadata"] == nlohmann::json{{"author", "A=B"}, {"note", "last"}});
  CHECK(has(run_oclc(m.model() + " --target cpu -o " + m.at("plan.bin") + " --metadata author").text,
            "wanted --metadata NAME=TEXT, found 'author'"));
}

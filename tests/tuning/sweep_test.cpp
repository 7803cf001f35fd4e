#include "compiler/tuning/sweep.h"

#include <doctest/doctest.h>

#include <set>

#include "compiler/compile.h"
#include "compiler/ir/copy.h"
#include "compiler/ir/text.h"

namespace oclc::test {
namespace {

std::vector<std::string> texts(int count, std::uint32_t seed) {
  std::vector<std::string> list;
  for (const TuningJob& job : sweep_jobs(count, seed)) list.push_back(job.label + print_graph(*job.graph));
  return list;
}

TEST_CASE("a sweep's contractions follow from its seed alone") {
  CHECK(texts(24, 5) == texts(24, 5));
  CHECK(texts(24, 5) != texts(24, 6));
  const auto longer = texts(24, 5), shorter = texts(8, 5);
  CHECK(std::vector<std::string>(longer.begin(), longer.begin() + 8) == shorter);
}

TEST_CASE("a sweep has every kind, and each contraction compiles on every target") {
  std::set<std::string> kinds;
  for (const TuningJob& job : sweep_jobs(16, 3)) {
    CAPTURE(job.label);
    kinds.insert(job.label.substr(0, job.label.find(' ')));
    std::int64_t contractions = 0;
    for (const Node* node : job.graph->nodes())
      if (node->op->name == "conv" || node->op->name == "matmul") ++contractions;
    CHECK(contractions == 1);
    for (const Target& target : target_rows()) {
      CAPTURE(target.name);
      for (const char* precision : {"fp32", "fast", "strict", "tf32"}) {
        CompileOptions options;
        options.target = target;
        options.precision = precision;
        auto module = std::make_shared<Module>();
        module->entries.push_back(copy_graph(*job.graph));
        CHECK(compile(std::move(module), options).plan.launches > 0);
      }
    }
  }
  CHECK(kinds.size() == 8);
}

}  // namespace
}  // namespace oclc::test

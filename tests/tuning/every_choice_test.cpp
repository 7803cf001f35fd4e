// Every choice that the table of strategies offers for a contraction, those that lose by estimate included, becomes code.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "compiler/compile.h"
#include "compiler/ir/copy.h"
#include "compiler/ops/builder.h"
#include "compiler/tuning/sweep.h"

namespace oclc::test {
namespace {

// Sets how many contractions of each source are drawn.
constexpr const char* kCount = "OCLC_CONTRACTIONS";

int count() {
  const char* text = std::getenv(kCount);
  return text ? std::atoi(text) : 8;
}

// C[g, m, n] = A[g, m, k] B[g, k, n] of any sizes, both of run time: few rows, and rows and columns that fill no vectors.
std::shared_ptr<const Graph> drawn_product(std::mt19937& random) {
  const auto between = [&](std::uint32_t least, std::uint32_t most) {
    return Expr(static_cast<std::int64_t>(least + random() % (most - least + 1)));
  };
  const auto any = [&] { return random() % 2 == 0 ? between(1, 48) : between(49, 700); };
  const Expr g = random() % 2 == 0 ? Expr(1) : between(2, 12), m = any(), n = any(), k = any();
  const bool turned_a = random() % 4 == 0, turned_b = random() % 2 == 0;
  auto graph = std::make_shared<Graph>();
  graph->name = "predict";
  Builder b(*graph, std::string(kTimedNode));
  Value* left = graph->add_input("x0", {DType::f32, {g, turned_a ? k : m, turned_a ? m : k}});
  Value* right = graph->add_input("x1", {DType::f32, {g, turned_b ? n : k, turned_b ? k : n}});
  graph->add_output("y", b.matmul(left, right, turned_a, turned_b));
  return graph;
}

std::vector<TuningJob> drawn_jobs() {
  std::vector<TuningJob> jobs = sweep_jobs(count(), 7);
  std::mt19937 random(7);
  for (int i = 0; i < count(); ++i) {
    const auto graph = drawn_product(random);
    jobs.push_back({"product " + graph->inputs()[0]->type.text() + " x " + graph->inputs()[1]->type.text(), graph});
  }
  return jobs;
}

// What is asked about rows while the job is compiled with these choices.
std::vector<TunedQuestion> compiled_with(const TuningJob& job, const Target& target, const char* precision,
                                         const Tuning& choices) {
  std::vector<TunedQuestion> rows;
  auto tuning = std::make_shared<Tuning>(choices);
  tuning->asked = [&](const TunedQuestion& question) {
    if (question.key.starts_with("row_")) rows.push_back(question);
  };
  CompileOptions options;
  options.target = target;
  options.target.tuning = tuning;
  options.precision = precision;
  auto module = std::make_shared<Module>();
  module->entries.push_back(copy_graph(*job.graph));
  compile(std::move(module), options);
  return rows;
}

TEST_CASE("every choice of every row for drawn contractions becomes code on every target") {
  std::set<std::pair<std::string, std::int64_t>> seen;  // rows, by target
  for (const TuningJob& job : drawn_jobs()) {
    CAPTURE(job.label);
    for (const Target& target : target_rows()) {
      if (target.counts_loops()) continue;
      CAPTURE(target.name);
      for (const char* precision : {"fp32", "tf32"}) {
        CAPTURE(precision);
        for (const TunedQuestion& question : compiled_with(job, target, precision, {})) {
          for (const TunedChoice& choice : question.others) {
            seen.insert({target.name, choice[0]});
            Tuning tuning;
            tuning.choices[question.key] = choice;
            CAPTURE(question.key);
            CAPTURE(choice[0]);
            CAPTURE(choice[1]);
            CHECK_NOTHROW(compiled_with(job, target, precision, tuning));
          }
        }
      }
    }
  }
  CHECK(seen.size() > 5 * target_rows().size());
}

}  // namespace
}  // namespace oclc::test

#include "compiler/tuning/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/compile.h"
#include "compiler/contraction/gpu/gpu_tiles.h"
#include "compiler/contraction/tiling.h"
#include "compiler/ir/copy.h"
#include "compiler/ops/builder.h"

namespace oclc::test {
namespace {

constexpr const char* kKey = "cpu_tiles 1 64 96 128 512 12";

// Tells nothing but tiles, whose time grows with their distance from 5 rows and 2 vectors; tiles of 3 vectors are wrong.
struct Device {
  int measured = 0;
  Measurement operator()(const TuningJob&, const Tuning& tuning, double) {
    ++measured;
    const TunedChoice modelled{8, 2, 1, 1, 0};
    Measurement m;
    m.asked = {{.key = kKey, .modelled = modelled}};
    const auto at = tuning.choices.find(kKey);
    const TunedChoice& c = at == tuning.choices.end() ? modelled : at->second;
    m.seconds = 1 + std::abs(static_cast<double>(c[0]) - 5) + std::abs(static_cast<double>(c[1]) - 2);
    if (c[1] == 3) m.note = "wrong: max_rel 1";
    return m;
  }
};

TuningOptions options() {
  TuningOptions o;
  o.convolution.target = find_target("cpu");
  return o;
}

TEST_CASE("case 82: the best choice is found, wrong ones are not taken, and nothing is timed twice") {
  Device device;
  std::vector<Trial> kept;
  const auto keep = [&](const Trial& t) { kept.push_back(t); };
  const TuningJob job = product_job(64, 128, 96);
  int shown = 0;
  const JobResult first = search(job, options(), {}, std::ref(device), keep, [&](const TuningProgress& p) {
    ++shown;
    CHECK(p.best_seconds <= p.modelled_seconds);
  });
  CHECK(first.modelled_seconds == 4);
  CHECK(first.best_seconds == 1);
  CHECK(first.refused > 0);
  CHECK(first.known == 0);
  CHECK(shown > 10);
  CHECK(first.best.find(std::string(kKey) + ": 5 2 ") == 0);
  CHECK(device.measured == first.trials);
  CHECK(std::count_if(kept.begin(), kept.end(), [](const Trial& t) { return t.modelled; }) == 1);
  for (const Trial& t : kept) CHECK((t.choice[1] == 3) == !t.note.empty());
  // Again: what is known is not timed.
  device.measured = 0;
  const JobResult again = search(job, options(), kept, std::ref(device), keep, nullptr);
  CHECK(again.best_seconds == 1);
  CHECK(device.measured == 1);
  CHECK(again.known == first.trials - 1);
  // Interrupted, and then to the end.
  TuningOptions few = options();
  few.trials = 6;
  kept.clear();
  search(job, few, {}, std::ref(device), keep, nullptr);
  CHECK(kept.size() == 6);
  const JobResult rest = search(job, options(), kept, std::ref(device), keep, nullptr);
  CHECK(rest.known + rest.trials >= first.trials);
  CHECK(rest.best_seconds == 1);
}

TEST_CASE("a question that decides nothing leaves no trials") {
  // An operator that asks for tiles and takes none: each choice comes to the plan that was timed first.
  int measured = 0;
  const auto measure = [&](const TuningJob&, const Tuning&, double) {
    Measurement m;
    m.asked = {{.key = kKey, .modelled = {8, 2, 1, 1, 0}}};
    m.seconds = 1;
    m.repeated = measured++ > 0;
    return m;
  };
  std::vector<Trial> kept;
  const JobResult r = search(product_job(64, 128, 96), options(), {}, measure, [&](const Trial& t) { kept.push_back(t); }, {});
  CHECK(measured > 10);
  CHECK(kept.empty());
  CHECK(r.best.empty());
  CHECK(r.best_seconds == r.modelled_seconds);
  // Nor does it replace what an operator with the same key left.
  measured = 0;
  search(product_job(64, 128, 96), options(), {{kKey, {5, 2, 1, 1, 0}, 2, false, {}}}, measure,
         [&](const Trial& t) { kept.push_back(t); }, {});
  CHECK(kept.empty());
}

TEST_CASE("case 82: choices are taken where they are legal") {
  const ContractionShape shape{1, 64, 96, 128, 512};
  Target target = find_target("cpu");
  const ContractionTiles modelled = choose_tiles(shape, target);
  const auto with = [&](const TunedChoice& choice) {
    auto tuning = std::make_shared<Tuning>();
    tuning->choices[kKey] = choice;
    target.tuning = tuning;
    return choose_tiles(shape, target);
  };
  CHECK(with({3, 1, 2, 2, 1}).rows == 3);
  CHECK(with({3, 1, 2, 2, 1}).panels == 2);
  for (const TunedChoice& bad :
       {TunedChoice{}, {3, 1, 2, 2}, {0, 1, 1, 1, 0}, {12, 4, 1, 1, 0}, {3, 1, 0, 1, 0}, {3, 1, 1, 1 << 20, 0}})
    CHECK(with(bad).rows == modelled.rows);
  for (const TunedChoice& choice : tile_choices(shape, target, 12)) CHECK(with(choice).rows == choice[0]);
  Target gpu = find_target("gpu");
  const GpuTiles usual = choose_gpu_tiles({1, 512, 512, 512}, gpu);
  for (const TunedChoice& choice : gpu_tile_choices(gpu)) {
    auto tuning = std::make_shared<Tuning>();
    tuning->choices["gpu_tiles 1 512 512 512"] = choice;
    gpu.tuning = tuning;
    CHECK(choose_gpu_tiles({1, 512, 512, 512}, gpu).rows == choice[0]);
  }
  auto tuning = std::make_shared<Tuning>();
  tuning->choices["gpu_tiles 1 512 512 512"] = {512, 512, 16, 8, 8};
  gpu.tuning = tuning;
  CHECK(choose_gpu_tiles({1, 512, 512, 512}, gpu).rows == usual.rows);
}

TEST_CASE("rows come before tiles, in the order in which they are asked for, and decide whose tiles these are") {
  // Row 7 is faster and has tiles of its own; row 9 is wrong.
  std::vector<TunedChoice> order;
  const auto measure = [&](const TuningJob&, const Tuning& tuning, double) {
    Measurement m;
    const auto row = tuning.choices.find("row_fp32 1"), tiles = tuning.choices.find(kKey);
    const std::int64_t id = row == tuning.choices.end() ? 3 : row->second[0];
    order.push_back({id});
    m.asked = {{"row_fp32 1", {3}, {{3}, {9}, {7}}, 0.5}};
    m.kernels = {{.strategy = "fma_in_place: tile 6 x 4", .seconds = 0.375}, {.strategy = "", .seconds = 0.125}};
    if (id == 7) m.asked.push_back({.key = kKey, .modelled = {8, 2, 1, 1, 0}});
    m.seconds = id == 7 ? (tiles == tuning.choices.end() ? 2 : 1.5) : 3;
    if (id == 9) m.note = "wrong: max_rel 1", m.seconds = 1;
    return m;
  };
  std::vector<Trial> kept;
  const JobResult r = search(product_job(64, 128, 96), options(), {}, measure, [&](const Trial& t) { kept.push_back(t); }, {});
  CHECK(order[0] == TunedChoice{3});
  CHECK(order[1] == TunedChoice{9});
  CHECK(order[2] == TunedChoice{7});
  CHECK(r.estimated_seconds == 0.5);
  CHECK(r.kernels.size() == 2);
  CHECK(r.modelled_seconds == 3);
  CHECK(r.best_seconds == 1.5);
  CHECK(r.refused == 1);
  CHECK(std::any_of(kept.begin(), kept.end(), [](const Trial& t) { return t.key == kKey; }));
}

TEST_CASE("what looks best is timed again beside the model's choice, in turn") {
  int forgotten = 0, measured = 0;
  TuningOptions again = options();
  again.rounds = 3;
  again.forget = [&] { ++forgotten; };
  // The first run of row 7 was lucky: in truth it is slower.
  const auto measure = [&](const TuningJob&, const Tuning& tuning, double) {
    ++measured;
    Measurement m;
    m.asked = {{"row_fp32 1", {3}, {{3}, {7}}}};
    m.seconds = tuning.choices.empty() ? 2 : forgotten == 0 ? 1 : 4;
    return m;
  };
  const JobResult r = search(product_job(64, 128, 96), again, {}, measure, [](const Trial&) {}, {});
  CHECK(forgotten == 6);
  CHECK(r.modelled_seconds == 2);
  CHECK(r.best_seconds == 2);
}

TEST_CASE("what a schedule's passes estimate is no question") {
  // A long sum of few rows, which passes of a GPU's schedule cut into any number of parts before they choose one.
  for (const char* name : {"h200", "gpu", "cpu", "cpu-amx"}) {
    CAPTURE(name);
    std::map<std::string, int> kinds;
    CompileOptions compile_options;
    compile_options.target = find_target(name);
    auto tuning = std::make_shared<Tuning>();
    std::set<std::string> keys;
    tuning->asked = [&](const TunedQuestion& question) {
      if (keys.insert(question.key).second) ++kinds[question.key.substr(0, question.key.find(' '))];
    };
    compile_options.target.tuning = tuning;
    auto module = std::make_shared<Module>();
    module->entries.push_back(copy_graph(*product_job(49, 4608, 512).graph));
    compile(std::move(module), compile_options);
    CHECK(kinds["row_fp32"] >= 1);
    CHECK(kinds["gpu_tiles"] + kinds["cpu_tiles"] <= 2);
  }
}

// Two equal convolutions, one other, a product and a product of values.
std::shared_ptr<Module> network() {
  auto graph = std::make_unique<Graph>();
  graph->name = "predict";
  Builder b(*graph, "layer");
  const auto weights = [&](std::vector<std::int64_t> shape) { return b.constant(HostTensor(DType::f32, std::move(shape))); };
  const ConvOptions same{.strides = {1, 1}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}};
  Value* x = graph->add_input("x", {DType::f32, {1, 8, 6, 6}});
  for (int i = 0; i < 3; ++i) x = b.relu(b.conv(x, weights({8, 8, 3, 3}), nullptr, same));
  Value* rows = b.reshape(x, {Expr(8), Expr(36)});
  graph->add_output("y", b.matmul(b.matmul(rows, weights({36, 36})), rows, false, true));
  auto module = std::make_shared<Module>();
  module->entries.push_back(std::move(graph));
  return module;
}

TEST_CASE("the operators of a module are taken once each, and compile alone") {
  const std::vector<TuningJob> jobs = tuning_jobs(*network());
  CHECK(jobs.size() == 4);  // the first convolution reads the network's input
  std::set<std::string> keys;
  for (const TuningJob& job : jobs) {
    CAPTURE(job.label);
    auto module = std::make_shared<Module>();
    module->entries.push_back(copy_graph(*job.graph));
    CompileOptions compile_options;
    compile_options.target = find_target("cpu");
    auto tuning = std::make_shared<Tuning>();
    tuning->asked = [&](const TunedQuestion& question) { keys.insert(question.key); };
    compile_options.target.tuning = tuning;
    compile(std::move(module), compile_options);
  }
  CHECK(std::count_if(jobs.begin(), jobs.end(), [](const TuningJob& job) { return job.label.ends_with(", 2 times"); }) == 1);
  CHECK(std::any_of(keys.begin(), keys.end(), [](const auto& k) { return k.starts_with("conv_fp32 1 8 6 6 8 8 3 3"); }));
  CHECK(std::any_of(keys.begin(), keys.end(), [](const auto& k) { return k.starts_with("cpu_tiles"); }));
  // The same questions as those of the whole network.
  std::set<std::string> whole;
  CompileOptions compile_options;
  compile_options.target = find_target("cpu");
  auto tuning = std::make_shared<Tuning>();
  tuning->asked = [&](const TunedQuestion& question) { whole.insert(question.key); };
  compile_options.target.tuning = tuning;
  compile(network(), compile_options);
  for (const std::string& key : whole) CHECK_MESSAGE(keys.count(key) == 1, key);
}

}  // namespace
}  // namespace oclc::test

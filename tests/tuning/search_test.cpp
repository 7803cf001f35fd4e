#include "compiler/tuning/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/compile.h"
#include "compiler/contraction/gpu_tiles.h"
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
    m.asked = {{kKey, modelled}};
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

TEST_CASE("the best choice is found, wrong ones are not taken, and nothing is timed twice") {
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
    m.asked = {{kKey, {8, 2, 1, 1, 0}}};
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

TEST_CASE("choices are taken where they are legal") {
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
    tuning->asked = [&](const std::string& key, const TunedChoice&) { keys.insert(key); };
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
  tuning->asked = [&](const std::string& key, const TunedChoice&) { whole.insert(key); };
  compile_options.target.tuning = tuning;
  compile(network(), compile_options);
  for (const std::string& key : whole) CHECK_MESSAGE(keys.count(key) == 1, key);
}

}  // namespace
}  // namespace oclc::test

// A cost model of kernel times, fitted to contractions that were timed.
#include "compiler/tuning/kernel_time.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/tuning/sweep.h"

namespace oclc::test {
namespace {

// 5 us a launch, twice what a row estimates, 1 TB/s; loops take 2 ns a term beside.
double device_seconds(const std::vector<TimedKernel>& kernels) {
  double sum = 0;
  for (const TimedKernel& k : kernels) sum += 5e-6 + k.bytes * 1e-12 + (k.strategy.empty() ? k.terms * 2e-9 : 2 * k.seconds);
  return sum;
}

std::vector<TimedContraction> timed(int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto between = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random()) / 4294967296.0;
  };
  std::vector<TimedContraction> list;
  for (int i = 0; i < count; ++i) {
    const bool loops = i % 3 == 0;
    TimedKernel k{.strategy = loops ? "" : "fma_in_place: tile 6 x 4",
                  .seconds = std::exp(between(-14, -7)),
                  .flops = 1,
                  .bytes = std::exp(between(8, 18)),
                  .results = 1,
                  .terms = between(1, 5000)};
    list.push_back({{k}, device_seconds({k})});
  }
  return list;
}

TEST_CASE("a fit finds what a device takes, of contractions that it was not fitted to as well") {
  const KernelTimeModel model = KernelTimeModel::fit(timed(120, 1), find_target("cpu"));
  REQUIRE(model.kinds.size() == 2);
  CHECK(model.kinds.at("loops").kernels == 40);
  CHECK(model.kinds.at("fma_in_place").error < 0.03);
  for (const TimedContraction& other : timed(30, 2))
    CHECK(model.seconds(other.kernels) == doctest::Approx(other.seconds).epsilon(0.12));
}

TEST_CASE("a few kernels of a kind count with others of their strategy, and unknown ones as their row estimates") {
  std::vector<TimedContraction> list = timed(60, 3);
  for (TimedContraction& t : list) t.kernels[0].has_taps = !t.kernels[0].strategy.empty();
  list.push_back(list[1]);
  list.back().kernels[0].has_taps = false;
  const KernelTimeModel model = KernelTimeModel::fit(list, find_target("cpu"));
  CHECK(model.kinds.count("fma_in_place taps") == 1);
  CHECK(model.kinds.count("fma_in_place") == 1);  // one kernel: the kind of last resort
  const TimedKernel unknown{.strategy = "window: tile 14 x 2", .seconds = 3e-5};
  CHECK(model.seconds(std::vector{unknown}) == 3e-5);
  CHECK(KernelTimeModel{}.seconds(std::vector{unknown, unknown}) == 6e-5);
  CHECK(KernelTimeModel::fit({}, find_target("cpu")).kinds.empty());
}

TEST_CASE("trials keep a model, of several fits of a kind the closest, and what is no fit is passed over") {
  const KernelTimeModel model = KernelTimeModel::fit(timed(60, 4), find_target("cpu"));
  std::vector<Trial> trials = trials_of(model);
  REQUIRE(trials.size() == 2);
  CHECK(trials[0].key.starts_with("cost kernel "));
  const TimedContraction other = timed(3, 5)[1];
  CHECK(kernel_time_model(trials).seconds(other.kernels) == doctest::Approx(model.seconds(other.kernels)).epsilon(1e-3));
  Trial worse = trials[0], broken = trials[0];
  worse.seconds = 9;
  worse.choice[0] *= 100;
  broken.seconds = 0;
  broken.choice.pop_back();
  trials.insert(trials.begin(), worse);
  trials.push_back(worse);
  trials.push_back(broken);
  CHECK(kernel_time_model(trials).seconds(other.kernels) == doctest::Approx(model.seconds(other.kernels)).epsilon(1e-3));
}

TEST_CASE("contractions of calibration follow from a seed, and have sizes that no sweep has") {
  const std::vector<TuningJob> jobs = calibration_jobs(24, 7), again = calibration_jobs(24, 7);
  REQUIRE(jobs.size() == 24);
  std::set<std::string> kinds;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CHECK(jobs[i].label == again[i].label);
    if (i % 2) kinds.insert(jobs[i].label.substr(0, jobs[i].label.find(' ')));
  }
  for (const char* kind : {"dense", "pointwise", "first", "product", "squeezed"}) CHECK(kinds.count(kind) == 1);
  CHECK(jobs[0].label == sweep_jobs(1, 7)[0].label);
}

}  // namespace
}  // namespace oclc::test

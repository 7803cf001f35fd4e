// Rates of a device from small kernels, kept as trials.
#include "compiler/tuning/calibration.h"

#include <doctest/doctest.h>

#include <cmath>

#include "compiler/ops/reference/evaluate.h"

namespace oclc::test {
namespace {

// A device that computes 200 Gflop/s, moves 20 GB/s from memory and 50 GB/s from its cache, and takes 10 us a launch.
Measurement device(const TuningJob& job, const Tuning&, double) {
  const auto elements = static_cast<double>(job.graph->inputs()[0]->type.elements().value());
  double operators = 0;
  for (const Node* node : job.graph->nodes()) operators += node->inputs.empty() ? 0 : 1;
  Measurement m;
  m.seconds = job.label == "memory"       ? 16 * elements / 20e9
              : job.label == "last cache" ? 16 * elements / 50e9
              : job.label == "launches"   ? operators * 1e-6
                                          : 2 * operators * elements / 200e9;
  m.span_seconds = job.label == "launches" ? 3e-6 + operators * 10e-6 : m.seconds;
  return m;
}

const CalibratedRow& row(const std::vector<CalibratedRow>& rows, const std::string& name) {
  for (const CalibratedRow& r : rows)
    if (r.name == name) return r;
  FAIL("no row ", name);
  return rows.front();
}

TEST_CASE("rates come out of what small kernels take, beside the table's") {
  const Target target = find_target("cpu");
  std::vector<Trial> kept;
  const auto rows = calibrate(target, device, [&](const Trial& t) { kept.push_back(t); });
  CHECK(row(rows, "flops").measured == doctest::Approx(200e9));
  CHECK(row(rows, "flops").table == target.flops);
  CHECK(row(rows, "bytes_per_second").measured == doctest::Approx(20e9));
  CHECK(row(rows, "launch_seconds").measured == doctest::Approx(10e-6));
  CHECK(row(rows, "kLastCacheSpeed").measured == doctest::Approx(2.5));
  CHECK(kept.size() == rows.size());
  const DeviceRates rates = calibrated_rates(kept);
  CHECK(rates.flops == doctest::Approx(200e9));
  CHECK(rates.bytes_per_second == doctest::Approx(20e9));
  CHECK(rates.launch_seconds == doctest::Approx(10e-6));
}

TEST_CASE("what cannot be measured says why and is not kept") {
  std::vector<Trial> kept;
  const auto refuse = [](const TuningJob& job, const Tuning& tuning, double give_up) {
    Measurement m = device(job, tuning, give_up);
    if (job.label == "multiply-adds") m.note = "wrong: max_rel 1";
    if (job.label == "launches") m.span_seconds = 0;  // the clock's steps are longer
    return m;
  };
  const auto rows = calibrate(find_target("gpu"), refuse, [&](const Trial& t) { kept.push_back(t); });
  CHECK(row(rows, "flops").note == "wrong: max_rel 1");
  CHECK(row(rows, "flops").measured == 0);
  CHECK(row(rows, "launch_seconds").note == "too short for the device's clock");
  CHECK(row(rows, "kRowCacheSpeed").note.empty());
  CHECK(kept.size() == 2);
  CHECK(calibrated_rates(kept).flops == 0);
  CHECK(calibrated_rates(kept).launch_seconds == 0);
}

TEST_CASE("of several calibrations the fastest run counts, and what is no calibration does not") {
  const std::vector<Trial> trials = {{"cost flops", {100}, 2.0, false, ""},      {"cost flops", {200}, 1.0, false, ""},
                                     {"cost flops", {900}, 0.1, false, "wrong"}, {"cost flops", {1, 2}, 0.1, false, ""},
                                     {"cost flops", {-5}, 0.1, false, ""},       {"cpu_tiles 1", {700}, 0.1, false, ""}};
  CHECK(calibrated_rates(trials).flops == 200);
  CHECK(calibrated_rates({}).bytes_per_second == 0);
}

TEST_CASE("a target takes rates that can be true") {
  Target target = find_target("cpu");
  const Target row = target;
  CHECK(set_rates(target, {}));
  CHECK(target.flops == row.flops);
  CHECK(set_rates(target, {.flops = row.flops / 2, .launch_seconds = 5e-6}));
  CHECK(target.flops == row.flops / 2);
  CHECK(target.launch_seconds == 5e-6);
  CHECK_FALSE(set_rates(target, {.bytes_per_second = row.bytes_per_second * 1000}));
  CHECK_FALSE(set_rates(target, {.bytes_per_second = std::nan("")}));
  CHECK(target.bytes_per_second == row.bytes_per_second);
}

}  // namespace
}  // namespace oclc::test

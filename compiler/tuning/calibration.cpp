#include "compiler/tuning/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/ops/builder.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr std::string_view kKeys = "cost ";
// Fused multiply-adds of an element: independent chains of dependent ones, reduced at the end. A core's out-of-order window
// holds a few hundred instructions, so its chains are short and its operands stay in its cache; compute units hide latency by
// other work-items and need a high arithmetic intensity.
struct MultiplyAdds {
  int chains, steps;
  std::int64_t elements;
  double flops() const { return 2.0 * static_cast<double>((chains * (steps + 1) - 1) * elements); }
};
constexpr MultiplyAdds kOfCores = {12, 8, 1 << 18}, kOfComputeUnits = {4, 128, 1 << 20};
// Elements of a tensor that no cache holds, and of one that a last cache does.
constexpr std::int64_t kStreamed = 1 << 24, kCached = 1 << 19;
constexpr int kLaunches = 65;
// Seconds of a run that need not be repeated.
constexpr double kGiveUp = 10;
constexpr int kInterleavedRounds = 3;
// Rates are kept as whole numbers, seconds as nanoseconds, ratios as thousandths.
constexpr double kNano = 1e9, kMilli = 1e3;

Value* input(Graph& graph, const char* name, std::int64_t elements) {
  return graph.add_input(name, {DType::f32, {Expr(elements)}});
}

// A function of three tensors of the same size, each element by itself.
template <class Apply>
TuningJob elements_job(std::string label, std::int64_t elements, const Apply& apply) {
  auto graph = std::make_shared<Graph>();
  graph->name = "predict";
  Builder b(*graph, std::string(kTimedNode));
  graph->add_output("y", apply(b, input(*graph, "x0", elements), input(*graph, "x1", elements), input(*graph, "x2", elements)));
  return {std::move(label), graph};
}

TuningJob fma_job(const MultiplyAdds& work) {
  return elements_job("multiply-adds", work.elements, [&](Builder& b, Value* x, Value* p, Value* q) {
    Value* all = nullptr;
    for (int chain = 0; chain < work.chains; ++chain) {
      Value* sum = b.fma(x, b.scalar(DType::f32, chain), p);
      for (int step = 1; step < work.steps; ++step) sum = b.fma(sum, p, q);
      all = all ? b.fma(all, q, sum) : sum;
    }
    return all;
  });
}

// Three tensors are read and one is written.
TuningJob moving_job(std::string label, std::int64_t elements) {
  return elements_job(std::move(label), elements, [](Builder& b, Value* x, Value* p, Value* q) { return b.fma(x, p, q); });
}
double bytes_moved(std::int64_t elements) { return 4.0 * static_cast<double>(elements) * sizeof(float); }

// A kernel an operator.
TuningJob launches_job(int count) {
  TuningJob job = elements_job("launches", 16, [&](Builder& b, Value* x, Value* p, Value*) {
    for (int i = 0; i < count; ++i) x = b.add(x, p);
    return x;
  });
  job.disabled = {"fuse"};
  return job;
}

class Calibration {
 public:
  Calibration(const Target& target, const Measure& measure, const std::function<void(const Trial&)>& keep)
      : target_(target), measure_(measure), keep_(keep) {}

  std::vector<CalibratedRow> run() {
    const bool cores = target_.items_are_cores();
    const MultiplyAdds& work = cores ? kOfCores : kOfComputeUnits;
    const std::vector<Measurement> timed =
        interleaved({fma_job(work), moving_job("memory", kStreamed), moving_job("last cache", kCached), launches_job(1),
                     launches_job(kLaunches)},
                    measure_, kGiveUp);
    const Measurement &fma = timed[0], &streamed = timed[1], &cached = timed[2], &one = timed[3], &many = timed[4];
    const double memory = bytes_moved(kStreamed), cache = bytes_moved(kCached);
    add({"flops", "flop/s", work.flops() / fma.seconds, target_.flops, fma.note}, fma.seconds, 1);
    add({"bytes_per_second", "B/s", memory / streamed.seconds, target_.bytes_per_second, streamed.note}, streamed.seconds, 1);
    const double launch = (many.span_seconds - one.span_seconds) / (kLaunches - 1);
    add({"launch_seconds", "s", launch, target_.launch_seconds, one.note + many.note}, launch, kNano);
    add({cores ? "kLastCacheSpeed" : "kRowCacheSpeed", "1", cache / cached.seconds / (memory / streamed.seconds),
         cores ? static_cast<double>(cost::kLastCacheSpeed) : cost::kRowCacheSpeed, cached.note + streamed.note},
        cached.seconds, kMilli);
    return std::move(rows_);
  }

 private:
  void add(CalibratedRow row, double seconds, double scale) {
    if (row.note.empty() && !(std::isfinite(row.measured) && row.measured > 0 && seconds > 0))
      row.note = "too short for the device's clock";
    if (row.note.empty())
      keep_({.key = std::string(kKeys) + row.name, .choice = {std::llround(row.measured * scale)}, .seconds = seconds});
    else
      row.measured = 0;
    rows_.push_back(std::move(row));
  }

  const Target& target_;
  const Measure& measure_;
  const std::function<void(const Trial&)>& keep_;
  std::vector<CalibratedRow> rows_;
};

}  // namespace

std::vector<Measurement> interleaved(const std::vector<TuningJob>& jobs, const Measure& measure, double give_up_seconds,
                                     const std::function<void(std::size_t, std::size_t)>& told) {
  std::vector<Measurement> least(jobs.size());
  const std::size_t count = kInterleavedRounds * jobs.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Measurement m = measure(jobs[i % jobs.size()], Tuning(), give_up_seconds);
    Measurement& best = least[i % jobs.size()];
    if (i < jobs.size() || !m.note.empty()) best = m;
    if (best.note.empty()) {
      best.seconds = std::min(best.seconds, m.seconds);
      best.span_seconds = std::min(best.span_seconds, m.span_seconds);
    }
    if (told) told(i + 1, count);
  }
  return least;
}

bool is_calibration(const std::string& key) { return key.starts_with(kKeys); }

std::vector<CalibratedRow> calibrate(const Target& target, const Measure& measure,
                                     const std::function<void(const Trial&)>& keep) {
  return Calibration(target, measure, keep).run();
}

DeviceRates calibrated_rates(const std::vector<Trial>& trials) {
  std::map<std::string, const Trial*> fastest;
  for (const Trial& trial : trials) {
    if (!is_calibration(trial.key) || !trial.note.empty() || trial.choice.size() != 1 || trial.choice[0] <= 0) continue;
    const Trial*& best = fastest[trial.key.substr(kKeys.size())];
    if (!best || trial.seconds < best->seconds) best = &trial;
  }
  const auto value = [&](const char* name) {
    const auto at = fastest.find(name);
    return at == fastest.end() ? 0.0 : static_cast<double>(at->second->choice[0]);
  };
  return {value("flops"), value("bytes_per_second"), value("launch_seconds") / kNano};
}

}  // namespace oclc

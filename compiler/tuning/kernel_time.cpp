#include "compiler/tuning/kernel_time.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/median.h"

namespace oclc {
namespace {

constexpr std::string_view kKey = "cost kernel ";
// Fewer kernels would overfit: they count with others of their strategy.
constexpr int kFewestOfKind = 8;
// Rounds of coordinate descent, and its steps of a coefficient's logarithm; most converge within twenty rounds.
constexpr int kRounds = 25;
constexpr double kSteps[] = {-8, -2, -0.5, -0.1, -0.02, 0.02, 0.1, 0.5, 2, 8};
// Factors so small count as nothing; the least estimate, whose logarithm is taken.
constexpr double kLeastLogarithm = -60, kLeastSeconds = 1e-9;
// Initial values of the coefficients that no target has.
constexpr double kTermSeconds = 1e-9, kResultSeconds = 1e-12;
// Factors are kept as whole numbers of these.
constexpr KernelTimeCoefficients kUnits = {1e-12, 1e-6, 1e-18, 1e-18, 1e-18, 1e-18};

constexpr std::string_view kLoops = "loops";

std::string name_of(const TimedKernel& kernel) {
  return kernel.strategy.empty() ? std::string(kLoops) : kernel.strategy.substr(0, kernel.strategy.find(':'));
}

// The kind, then the coarser kinds that stand in for it where too few were timed.
std::vector<std::string> kinds_of(const TimedKernel& kernel, bool is_one_of_several) {
  const std::string name = name_of(kernel);
  if (name == kLoops && kernel.flops == 0) return {"copies"};
  const std::string taps = kernel.has_taps ? " taps" : "";
  const std::string others = is_one_of_several ? " of several" : "";
  return {name + taps + others, name + taps, name + others, name};
}

KernelTimeCoefficients features_of(const TimedKernel& k) {
  return {1, name_of(k) == kLoops ? 0 : k.seconds, k.bytes, k.terms, k.flops, k.results};
}

// The least-absolute-deviations problem: a row of features per contraction.
class Fit {
 public:
  explicit Fit(std::span<const TimedContraction> timed) {
    for (const TimedContraction& t : timed)
      for (const TimedKernel& k : t.kernels)
        for (const std::string& kind : kinds_of(k, t.kernels.size() > 1)) ++counts_[kind];
    for (const TimedContraction& t : timed)
      for (const TimedKernel& k : t.kernels) columns_.try_emplace(kind_of(k, t), columns_.size());
    for (const TimedContraction& t : timed) {
      std::vector<double> row(columns_.size() * std::tuple_size_v<KernelTimeCoefficients>);
      for (const TimedKernel& k : t.kernels) {
        const KernelTimeCoefficients features = features_of(k);
        const std::size_t at = column_of(k, t);
        for (std::size_t i = 0; i < features.size(); ++i) row[at + i] += features[i];
      }
      rows_.push_back(std::move(row));
      measured_.push_back(t.seconds);
    }
  }

  KernelTimeModel run(std::span<const TimedContraction> timed, const KernelTimeCoefficients& begin) {
    for (std::size_t i = 0; i < columns_.size() * begin.size(); ++i) logarithms_.push_back(std::log(begin[i % begin.size()]));
    estimates_.assign(rows_.size(), 0);
    for (std::size_t row = 0; row < rows_.size(); ++row)
      for (std::size_t i = 0; i < logarithms_.size(); ++i) estimates_[row] += rows_[row][i] * std::exp(logarithms_[i]);
    double loss = loss_with(0, 0);
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t i = 0; i < logarithms_.size(); ++i) loss = step(i, loss);
    KernelTimeModel model;
    for (const auto& [kind, column] : columns_) {
      FittedKind& fitted = model.kinds[kind];
      for (std::size_t i = 0; i < begin.size(); ++i) fitted.coefficients[i] = std::exp(logarithms_[column * begin.size() + i]);
    }
    add_errors(timed, model);
    return model;
  }

 private:
  std::size_t column_of(const TimedKernel& k, const TimedContraction& t) const {
    return columns_.at(kind_of(k, t)) * std::tuple_size_v<KernelTimeCoefficients>;
  }

  std::string kind_of(const TimedKernel& k, const TimedContraction& t) const {
    const std::vector<std::string> kinds = kinds_of(k, t.kernels.size() > 1);
    for (const std::string& kind : kinds)
      if (counts_.at(kind) >= kFewestOfKind) return kind;
    return kinds.back();
  }

  double loss_with(std::size_t coefficient, double change) const {
    double sum = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      sum += std::abs(std::log(std::max(estimates_[row] + rows_[row][coefficient] * change, kLeastSeconds) / measured_[row]));
    return sum;
  }

  // Moves one coefficient to where the loss is least.
  double step(std::size_t coefficient, double loss) {
    const double now = std::exp(logarithms_[coefficient]);
    double best = logarithms_[coefficient];
    for (const double by : kSteps) {
      const double there = std::max(logarithms_[coefficient] + by, kLeastLogarithm),
                   with = loss_with(coefficient, std::exp(there) - now);
      if (with < loss) loss = with, best = there;
    }
    const double change = std::exp(best) - now;
    for (std::size_t row = 0; row < rows_.size(); ++row) estimates_[row] += rows_[row][coefficient] * change;
    logarithms_[coefficient] = best;
    return loss;
  }

  void add_errors(std::span<const TimedContraction> timed, KernelTimeModel& model) const {
    std::map<std::string, std::vector<double>> errors;
    for (std::size_t row = 0; row < timed.size(); ++row)
      for (const TimedKernel& k : timed[row].kernels)
        errors[kind_of(k, timed[row])].push_back(std::abs(estimates_[row] / measured_[row] - 1));
    for (auto& [kind, list] : errors) {
      model.kinds[kind].kernels = static_cast<int>(list.size());
      model.kinds[kind].error = median(std::move(list));
    }
  }

  std::map<std::string, int> counts_;           // of kernels, by all that their kind counts as
  std::map<std::string, std::size_t> columns_;  // by kind, in order of appearance
  std::vector<std::vector<double>> rows_;
  std::vector<double> measured_, estimates_, logarithms_;
};

}  // namespace

KernelTimeModel KernelTimeModel::fit(std::span<const TimedContraction> timed, const Target& target) {
  if (timed.empty()) return {};
  return Fit(timed).run(
      timed, {target.launch_seconds, 1, 1 / target.bytes_per_second, kTermSeconds, 1 / target.flops, kResultSeconds});
}

double KernelTimeModel::seconds(std::span<const TimedKernel> kernels) const {
  double sum = 0;
  for (const TimedKernel& kernel : kernels) {
    const KernelTimeCoefficients features = features_of(kernel);
    const FittedKind* fitted = nullptr;
    for (const std::string& kind : kinds_of(kernel, kernels.size() > 1)) {
      const auto at = kinds.find(kind);
      if (at != kinds.end() && !fitted) fitted = &at->second;
    }
    if (!fitted) sum += kernel.seconds;
    for (std::size_t i = 0; fitted && i < features.size(); ++i) sum += features[i] * fitted->coefficients[i];
  }
  return sum;
}

std::vector<Trial> trials_of(const KernelTimeModel& model) {
  std::vector<Trial> trials;
  for (const auto& [kind, fitted] : model.kinds) {
    Trial& trial = trials.emplace_back(Trial{.key = std::string(kKey) + kind, .choice = {}, .seconds = fitted.error});
    for (std::size_t i = 0; i < kUnits.size(); ++i) trial.choice.push_back(std::llround(fitted.coefficients[i] / kUnits[i]));
    trial.choice.push_back(fitted.kernels);
  }
  return trials;
}

KernelTimeModel kernel_time_model(const std::vector<Trial>& trials) {
  KernelTimeModel model;
  for (const Trial& trial : trials) {
    const bool fits = trial.key.starts_with(kKey) && trial.choice.size() == kUnits.size() + 1 &&
                      std::all_of(trial.choice.begin(), trial.choice.end(), [](std::int64_t n) { return n >= 0; });
    if (!fits) continue;
    FittedKind kind{.coefficients = {}, .kernels = static_cast<int>(trial.choice.back()), .error = trial.seconds};
    for (std::size_t i = 0; i < kUnits.size(); ++i) kind.coefficients[i] = static_cast<double>(trial.choice[i]) * kUnits[i];
    FittedKind& known = model.kinds[trial.key.substr(kKey.size())];
    if (known.kernels == 0 || kind.error < known.error) known = kind;
  }
  return model;
}

}  // namespace oclc

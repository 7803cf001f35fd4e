#include "compiler/tuning/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "compiler/contraction/gpu/gpu_tiles.h"
#include "compiler/contraction/tiling.h"
#include "compiler/ir/op_def.h"
#include "compiler/passes/layout/conv_cost.h"

namespace oclc {
namespace {

using Clock = std::chrono::steady_clock;

// A first run so much slower than the best ends a trial.
constexpr double kHopeless = 2;

bool is_of(const std::string& key, std::string_view kind) { return key.starts_with(kind); }

// How far two choices are apart: sums of the logarithms of their numbers' ratios.
double distance(const TunedChoice& a, const TunedChoice& b) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    sum += std::abs(std::log2(static_cast<double>(a[i]) + 1) - std::log2(static_cast<double>(b[i]) + 1));
  return sum;
}

class Search {
 public:
  Search(const TuningJob& job, const TuningOptions& options, const std::vector<Trial>& known, const Measure& measure,
         const std::function<void(const Trial&)>& keep, const std::function<void(const TuningProgress&)>& progress)
      : job_(job), options_(options), known_(known), measure_(measure), keep_(keep), progress_(progress) {}

  JobResult run() {
    const Measurement first = measure_(job_, {}, INFINITY);
    result_.trials = 1;
    progress_now_.trial = 1;
    if (!first.note.empty()) {
      result_.refused = 1;
      return result_;
    }
    result_.modelled_seconds = best_ = first.seconds;
    result_.kernels = first.kernels;
    for (const TimedKernel& kernel : first.kernels) result_.estimated_seconds += kernel.seconds;
    report();
    Measurement now = first;
    // Each decides what is asked next: other rows have tiles of their own, and those a time of their own.
    for (const std::string_view kind : {"conv_", "row_", ""}) {
      for (const TunedQuestion& question : std::vector<TunedQuestion>(now.asked)) {
        const bool is_now =
            kind.empty() ? !is_of(question.key, "conv_") && !is_of(question.key, "row_") : is_of(question.key, kind);
        if (is_now) try_all({question.key, question.modelled, now.seconds, true, {}}, choices_for(question));
      }
      if (kind.empty() || choices_.choices.empty() || spent()) continue;
      Measurement next = measure_(job_, choices_, kHopeless * best_);
      if (next.note.empty()) now = std::move(next);
    }
    result_.best_seconds = best_;
    time_again();
    for (const auto& [key, choice] : choices_.choices)
      result_.best += fmt::format("{}{}: {}", result_.best.empty() ? "" : "; ", key, choice_text(choice));
    return result_;
  }

 private:
  bool spent() const {
    const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
    return elapsed > options_.budget_seconds || result_.trials >= options_.trials;
  }

  void time_again() {
    if (options_.rounds == 0 || !options_.forget || choices_.choices.empty()) return;
    double modelled = INFINITY, best = INFINITY;
    for (int i = 0; i < options_.rounds; ++i) {
      for (const bool is_best : {true, false}) {
        options_.forget();
        const Measurement m = measure_(job_, is_best ? choices_ : Tuning(), INFINITY);
        double& least = is_best ? best : modelled;
        if (m.note.empty()) least = std::min(least, m.seconds);
      }
    }
    if (!std::isfinite(modelled) || !std::isfinite(best)) return;
    result_.modelled_seconds = modelled;
    result_.best_seconds = std::min(best, modelled);
  }

  void report() {
    progress_now_.modelled_seconds = result_.modelled_seconds;
    progress_now_.best_seconds = best_;
    progress_now_.job_elapsed_seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (progress_) progress_(progress_now_);
  }

  // A convolution's strategy is asked for under another key where precision is spent on other layers first.
  void note(const Trial& trial) {
    keep_(trial);
    if (!is_of(trial.key, "conv_") || !trial.key.ends_with(" 4") || trial.choice.back() == 4) return;
    Trial other = trial;
    other.key.back() = '2';
    keep_(other);
  }

  std::vector<TunedChoice> strategies(const std::string& key) const {
    const std::vector<Node*> nodes = job_.graph->nodes();
    const auto conv = std::find_if(nodes.begin(), nodes.end(), [](const Node* n) { return n->op->name == "conv"; });
    if (conv == nodes.end()) return {};
    return strategy_choices(**conv, options_.convolution, key.ends_with(" 4"));
  }

  std::vector<TunedChoice> choices_for(const TunedQuestion& question) const {
    if (!question.others.empty()) return question.others;
    std::vector<TunedChoice> list = is_of(question.key, "conv_") ? strategies(question.key) : tiles(question.key);
    std::stable_sort(list.begin(), list.end(), [&](const TunedChoice& a, const TunedChoice& b) {
      return distance(a, question.modelled) < distance(b, question.modelled);
    });
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  std::vector<TunedChoice> tiles(const std::string& key) const {
    const Target& target = options_.convolution.target;
    if (is_of(key, "gpu_tiles ")) return gpu_tile_choices(target);
    if (!is_of(key, "cpu_tiles ")) return {};
    const TunedChoice s = parse_choice(key.substr(std::string_view("cpu_tiles ").size()));
    if (s.size() != 6) return {};
    return tile_choices({s[0], s[1], s[2], s[3], s[4]}, target, static_cast<int>(s[5]));
  }

  // The best of `list`, the likeliest first, becomes the choice for the key of `model`, the cost model's. A question whose
  // answers all come to one plan decides nothing here, though it may in another operator with the same key: its trials are not
  // kept.
  void try_all(const Trial& model, const std::vector<TunedChoice>& list) {
    const std::string& key = model.key;
    const TunedChoice& modelled = model.choice;
    bool decides = false, tried = false;
    progress_now_.planned = progress_now_.trial + static_cast<int>(list.size());
    for (const TunedChoice& choice : list) {
      ++progress_now_.trial;
      if (choice == modelled) continue;
      const auto before =
          std::find_if(known_.begin(), known_.end(), [&](const Trial& t) { return t.key == key && t.choice == choice; });
      Trial trial{key, choice, 0, false, {}};
      if (before != known_.end()) {
        trial = *before;
        ++result_.known;
        tried = true;  // the model's was kept with it
      } else {
        if (spent()) continue;
        Tuning with = choices_;
        with.choices[key] = choice;
        const Measurement m = measure_(job_, with, kHopeless * best_);
        ++result_.trials;
        tried = true;
        if (m.repeated) continue;
        if (!decides) decides = true, note(model);
        trial.seconds = m.seconds;
        trial.note = m.note;
        note(trial);
      }
      if (!trial.note.empty()) {
        ++result_.refused;
      } else if (trial.seconds > 0 && trial.seconds < best_) {
        best_ = trial.seconds;
        choices_.choices[key] = choice;
      }
      report();
    }
    if (!tried) note(model);
  }

  const TuningJob& job_;
  const TuningOptions& options_;
  const std::vector<Trial>& known_;
  const Measure& measure_;
  const std::function<void(const Trial&)>& keep_;
  const std::function<void(const TuningProgress&)>& progress_;
  const Clock::time_point begin_ = Clock::now();
  JobResult result_;
  TuningProgress progress_now_;
  Tuning choices_;  // the best so far
  double best_ = 0;
};

}  // namespace

JobResult search(const TuningJob& job, const TuningOptions& options, const std::vector<Trial>& known, const Measure& measure,
                 const std::function<void(const Trial&)>& keep, const std::function<void(const TuningProgress&)>& progress) {
  return Search(job, options, known, measure, keep, progress).run();
}

}  // namespace oclc

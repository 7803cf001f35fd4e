#include "tools/oclrun/training/train.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "oclc/train.hpp"
#include "tools/oclrun/inputs.h"
#include "tools/oclrun/progress.h"
#include "tools/oclrun/training/batches.h"
#include "tools/oclrun/training/rule.h"
#include "tools/oclrun/training/train_log.h"

namespace oclc::oclrun {
namespace {

// What feeds each input of the entry point.
struct Feeds {
  Batches batches;
  std::vector<io::Tensor> fixed;
  std::vector<Rule> rules;
  std::int64_t batch = 0;
};

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

const oclc_binding_info& input_named(Runner& runner, const std::string& option, const std::string& name) {
  std::string known;
  for (const oclc_binding_info& input : runner.inputs()) {
    if (name == input.name) return input;
    known += (known.empty() ? "" : ", ") + std::string(input.name);
  }
  throw UsageError{option + ": entry point '" + runner.entry_name() + "' has no input '" + name +
                   "'; it has: " + (known.empty() ? "none" : known)};
}

// From the plan where it is a number, from --batch, or from --dim where the first axis is a named dimension.
std::int64_t batch_size(Runner& runner, const rt::Plan& plan, const Options& o, const std::string& input) {
  const auto& inputs = runner.inputs();
  const auto at = std::find_if(inputs.begin(), inputs.end(), [&](const auto& i) { return input == i.name; });
  const char* axis =
      oclc_plan_dimension_text(plan.get(), runner.entry(), OCLC_INPUT, static_cast<std::uint32_t>(at - inputs.begin()), 0);
  const std::string text = axis ? axis : "";
  const auto fixed = whole(text);
  if (fixed && o.batch > 0 && o.batch != *fixed)
    throw UsageError{"--batch: the plan was compiled for batches of " + text + ", found " + std::to_string(o.batch)};
  if (fixed) return *fixed;
  for (const auto& [name, value] : o.dims)
    if (name == text) {
      if (o.batch > 0 && o.batch != value)
        throw UsageError{"--batch: --dim " + name + "=" + std::to_string(value) + " says otherwise, found " +
                         std::to_string(o.batch)};
      if (value < 1) throw UsageError{"--dim " + name + ": wanted a batch of at least 1"};
      return value;
    }
  if (o.batch > 0) return o.batch;
  throw UsageError{"input '" + input + "' " + at->shape_text + ": its batch size is open; give --batch N"};
}

Feeds make_feeds(Runner& runner, const rt::Plan& plan, const Options& o) {
  Feeds feeds{Batches(o.seed, o.shuffle), {}, {}, 0};
  for (const auto& [name, rule] : o.settings) feeds.rules.emplace_back(name, rule);
  for (const auto& [name, file] : o.data) {
    const oclc_binding_info& input = input_named(runner, "--data", name);
    if (input.rank == 0) throw UsageError{"--data: input '" + name + "' is a single number; give --set " + name + "=NUMBER"};
    feeds.batches.add(input, file, scale_of(o, name));
  }
  if (!o.data.empty()) {
    feeds.batch = batch_size(runner, plan, o, o.data[0].first);
    feeds.batches.set_size(feeds.batch);
  }
  runner.bind_dims(o.dims);
  for (const auto& [name, file] : o.inputs) {
    input_named(runner, "--input", name);
    feeds.fixed.push_back(read_tensor(file));
    feeds.fixed.back().name = name;
  }
  const auto has = [&](const char* name) {
    return std::any_of(o.data.begin(), o.data.end(), [&](const auto& d) { return d.first == name; }) ||
           std::any_of(o.inputs.begin(), o.inputs.end(), [&](const auto& d) { return d.first == name; }) ||
           std::any_of(o.settings.begin(), o.settings.end(), [&](const auto& d) { return d.first == name; });
  };
  for (std::uint32_t i = 0; i < runner.inputs().size(); ++i) {
    const oclc_binding_info& input = runner.inputs()[i];
    if (has(input.name)) continue;
    const std::string name = input.name;
    if (input.rank == 0 && !o.random) throw UsageError{"input '" + name + "' has no value: give --set " + name + "=NUMBER"};
    if (!o.random)
      throw UsageError{"input '" + name + "' " + input.shape_text + " has no value: give --data " + name + "=FILE, --input " +
                       name + "=FILE or --random"};
    feeds.fixed.push_back(random_tensor(input.dtype, runner.input_shape(i), *o.random + i));
    feeds.fixed.back().name = name;
  }
  if (feeds.batch == 0)
    for (const io::Tensor& t : feeds.fixed)
      if (feeds.batch == 0 && !t.shape.empty()) feeds.batch = t.shape[0];
  return feeds;
}

std::unique_ptr<Evaluation> make_evaluation(Runner& runner, const rt::Plan& plan, const Options& o, std::int64_t batch) {
  return o.eval_data.empty() ? nullptr : std::make_unique<Evaluation>(runner, plan, o, batch);
}

class Loop {
 public:
  Loop(Runner& runner, const rt::Plan& plan, const Options& o)
      : o_(o),
        runner_(runner),
        session_(runner.session()),
        feeds_(make_feeds(runner, plan, o)),
        trainer_(runner.session(), runner.entry()),
        evaluation_(make_evaluation(runner, plan, o, feeds_.batch)),
        start_(trainer_.next_step() - 1),
        log_(o.log, columns()),
        progress_(static_cast<std::uint64_t>(o.steps), static_cast<std::uint64_t>(feeds_.batch), !o.quiet && !o.json) {
    last_.resize(feeds_.rules.size());
  }

  TrainResult run(const volatile std::sig_atomic_t& interrupted) {
    for (const io::Tensor& t : feeds_.fixed) feed(t);
    const auto steps = static_cast<std::uint64_t>(o_.steps);
    std::uint64_t saved = start_;
    for (std::uint64_t k = 0; k < steps && !interrupted && !result_.stopped_early; ++k) {
      const std::uint64_t step = start_ + k;
      prepare(step);
      run_step(step + 1);
      const bool looks =
          evaluation_ && (k + 1 == steps || (o_.eval_every > 0 && (step + 1) % static_cast<std::uint64_t>(o_.eval_every) == 0));
      std::vector<oclc_step_result> results = trainer_.results(looks);
      told(results, looks ? evaluate(step + 1) : std::nullopt);
      if (o_.save_every > 0 && (step + 1) % static_cast<std::uint64_t>(o_.save_every) == 0) {
        session_.save_state(o_.save_state);
        saved = step + 1;
      }
    }
    told(trainer_.results(true), std::nullopt);
    const auto names = trainer_.value_names();
    result_.has_loss = !names.empty();
    for (std::size_t i = 0; i < names.size(); ++i)
      result_.means.emplace_back(names[i], sums_[i] / static_cast<double>(std::max<std::uint64_t>(result_.steps, 1)));
    result_.interrupted = interrupted && result_.steps < steps;
    result_.samples_per_second = progress_.samples_per_second();
    result_.seconds = progress_.seconds();
    if (!o_.save_state.empty() && saved != start_ + result_.steps) session_.save_state(o_.save_state);
    return result_;
  }

 private:
  std::vector<std::string> columns() const {
    std::vector<std::string> names = {"step"};
    for (const std::string& name : trainer_.value_names()) names.push_back(name);
    for (const Rule& rule : feeds_.rules) names.push_back(rule.name());
    names.push_back("seconds");
    if (evaluation_) names.insert(names.end(), {"eval_loss", "eval_accuracy"});
    return names;
  }

  // Looks at the held-out data after step `number`, keeps the best state, and sees whether the run goes on.
  std::optional<EvalResult> evaluate(std::uint64_t number) {
    const EvalResult found = evaluation_->run(number);
    result_.evaluations.push_back(found);
    if (!o_.json && !o_.quiet) {
      progress_.wipe();
      std::printf("%s\n", eval_line(found).c_str());
      std::fflush(stdout);
    }
    if (!result_.best || found.loss < best_loss_) {
      result_.best = number;
      best_loss_ = found.loss;
      worse_ = 0;
      if (!o_.save_best.empty()) session_.save_state(o_.save_best);
    } else if (o_.patience > 0 && ++worse_ >= o_.patience) {
      result_.stopped_early = true;
    }
    return found;
  }

  void feed(const io::Tensor& t) {
    oclc_tensor view = OCLC_INIT(oclc_tensor);
    view.dtype = t.dtype;
    view.rank = static_cast<std::uint32_t>(t.shape.size());
    view.shape = t.shape.data();
    view.host = const_cast<std::byte*>(t.data.data());
    view.bytes = t.data.size();
    trainer_.feed(t.name, view);
  }

  void prepare(std::uint64_t step) {
    for (std::size_t i = 0; i < feeds_.rules.size(); ++i) {
      const double value = feeds_.rules[i].at(step);
      if (last_[i] == value) continue;
      trainer_.set(feeds_.rules[i].name(), value);
      last_[i] = value;
    }
    for (std::size_t i = 0; i < feeds_.batches.sources().size(); ++i) {
      const Batches::Source& source = feeds_.batches.sources()[i];
      try {
        void* memory = trainer_.memory(source.samples.name, source.dtype, source.shape);
        feeds_.batches.fill(i, step, static_cast<std::byte*>(memory));
      } catch (const rt::Error& error) {
        if (error.status() == OCLC_E_BINDING) throw io::FileError(io::FileProblem::contents, source.file + ": " + error.what());
        throw;
      }
    }
  }

  void run_step(std::uint64_t number) {
    try {
      trainer_.step();
    } catch (const rt::Error& error) {
      if (error.status() != OCLC_E_NAN) runner_.explain(error);
      throw rt::Error(error.status(), error.cl_code(), "step " + std::to_string(number) + ": " + error.what());
    }
  }

  // `found`: on the held-out data, after the last of the steps.
  void told(const std::vector<oclc_step_result>& results, const std::optional<EvalResult>& found) {
    for (const oclc_step_result& r : results) {
      if (result_.steps++ == 0) result_.first_loss = r.loss;
      result_.loss = r.loss;
      result_.last = r.step;
      progress_.done(result_.steps, r.value_count ? std::optional(r.loss) : std::nullopt);
      for (std::size_t i = 0; i < r.value_count; ++i) sums_[i] += r.values[i];
      std::vector<double> row(r.values, r.values + r.value_count);
      for (const Rule& rule : feeds_.rules) row.push_back(rule.at(r.step - 1));
      row.push_back(progress_.seconds());
      if (evaluation_) {
        const bool here = found && found->step == r.step;
        row.push_back(here ? found->loss : std::nan(""));
        row.push_back(here && found->accuracy ? *found->accuracy : std::nan(""));
      }
      log_.row(r.step, row);
      if (std::isfinite(r.loss) || warned_ || o_.quiet || r.value_count == 0) continue;
      warned_ = true;
      tell("warning", "the loss of step " + std::to_string(r.step) + " is " + (std::isnan(r.loss) ? "NaN" : "infinite") +
                          "; --check-nan finds where a NaN is made");
    }
  }

  const Options& o_;
  const Runner& runner_;
  rt::Session& session_;
  Feeds feeds_;
  rt::Trainer trainer_;
  std::unique_ptr<Evaluation> evaluation_;
  double best_loss_ = 0;
  std::int64_t worse_ = 0;  // evaluations since the best
  std::uint64_t start_;
  TrainLog log_;
  TrainProgress progress_;
  std::vector<std::optional<double>> last_;
  TrainResult result_;
  double sums_[OCLC_STEP_VALUES] = {};
  bool warned_ = false;
};

}  // namespace

TrainResult train(Runner& runner, const rt::Plan& plan, const Options& o, const volatile std::sig_atomic_t& interrupted) {
  return Loop(runner, plan, o).run(interrupted);
}

std::string summary(const TrainResult& r) {
  char text[256];
  std::snprintf(text, sizeof text, "train: steps=%llu", static_cast<unsigned long long>(r.steps));
  std::string line = text;
  if (r.has_loss) {
    std::snprintf(text, sizeof text, " loss=%.6g first_loss=%.6g", r.loss, r.first_loss);
    line += text;
  }
  std::snprintf(text, sizeof text, " samples_per_s=%.4g seconds=%.3f", r.samples_per_second, r.seconds);
  line += text;
  for (const auto& [name, mean] : r.means) {
    std::snprintf(text, sizeof text, "%.6g", mean);
    line += " mean_" + name + "=" + text;
  }
  if (r.best) line += " best_step=" + std::to_string(*r.best);
  if (r.stopped_early) line += " stopped=patience";
  return line;
}

}  // namespace oclc::oclrun

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/op_def.h"
#include "compiler/ops/gradients/autodiff.h"
#include "compiler/support/integer_of.h"
#include "compiler/support/nearest.h"
#include "compiler/training/init_entry.h"
#include "compiler/training/model_copy.h"
#include "compiler/training/training.h"

namespace oclc {
namespace {

// Row length of the first of two summations over all gradients.
constexpr std::int64_t kSumRow = 4096;
constexpr std::string_view kLabels = "labels";
constexpr std::string_view kGradients = "gradients", kGradientCount = "gradients.count";

bool is_statistic(const Value* input) {
  return !input->users.empty() && std::all_of(input->users.begin(), input->users.end(), [&](const Node* user) {
    return user->op->name == "batch_norm" && (user->inputs[3] == input || user->inputs[4] == input);
  });
}

class TrainingBuilder {
 public:
  TrainingBuilder(Module& module, const TrainingOptions& options)
      : module_(module), options_(options), source_{std::move(module.entries.at(0)), {}, {}, {}} {
    check_frozen();
    warn_of_prediction();
    std::vector<const StateVariable*> parameters, statistics;
    for (const StateVariable& state : module.states) {
      if (std::any_of(options.frozen.begin(), options.frozen.end(),
                      [&](const std::string& prefix) { return state.name.starts_with(prefix); }))
        source_.frozen.push_back(&state);
      else if (is_statistic(source_input(state.name)))
        statistics.push_back(&state);
      else
        parameters.push_back(&state);
    }
    if (parameters.empty()) refuse_training("parameters to train", "none", ExitCode::bad_model);
    for (const auto& input : source_.graph->inputs()) {
      if (input->name == kLabels && loss_row().takes_labels)
        refuse_training(fmt::format("a model without an input '{}', the name of the loss's targets", kLabels), "one",
                        ExitCode::bad_model);
    }
    source_.parameters = std::make_unique<FlatState>("parameters", std::move(parameters));
    source_.statistics = std::make_unique<FlatState>("statistics", std::move(statistics));
  }

  std::vector<InputLimit> run() {
    std::vector<std::unique_ptr<Graph>> entries;
    entries.push_back(predict());
    entries.push_back(train_step());
    entries.push_back(eval_step());
    if (options_.accumulate) entries.push_back(accumulate_step());
    std::vector<StateVariable> states{source_.parameters->state};
    if (!source_.statistics->empty()) states.push_back(source_.statistics->state);
    states.insert(states.end(), optimizer_states_.begin(), optimizer_states_.end());
    if (options_.accumulate) {
      states.push_back({std::string(kGradients), source_.parameters->state.type, {}, named_parts("gradient")});
      states.push_back(scalar_state(kGradientCount, kTrainedType, 0));
    }
    if (scales_loss()) {
      for (StateVariable& state : LossScale::states(options_.mixed)) states.push_back(std::move(state));
    }
    if (draws_) states.push_back(scalar_state(kRandomStep, DType::u32, 0));
    if (draws_ || options_.init) states.push_back(scalar_state(kRandomSeed, DType::u32, options_.seed));
    if (options_.init) entries.push_back(init_entry(states));
    check_names(states);
    module_.states = std::move(states);
    module_.entries = std::move(entries);
    return std::move(limits_);
  }

 private:
  // The sum of the gradients of accumulate_step, and of how many batches it is.
  struct Accumulated {
    Value *sum, *count;
    explicit Accumulated(ModelCopy& c)
        : sum(c.graph->add_input(std::string(kGradients), c.parameters->type)),
          count(c.graph->add_input(std::string(kGradientCount), {kTrainedType, {}})) {}
  };

  const Value* source_input(const std::string& name) const {
    for (const auto& input : source_.graph->inputs()) {
      if (input->name == name) return input.get();
    }
    refuse_training(fmt::format("an input for the state '{}'", name), "none", ExitCode::bad_model);
  }

  static StateVariable scalar_state(std::string_view name, DType dtype, double value) {
    const HostTensor initial = HostTensor::scalar(dtype, value);
    return {std::string(name), initial.type(), initial, {}};
  }

  // The parameters' parts under the names "<parameter>/<suffix>".
  std::vector<StatePart> named_parts(std::string_view suffix) const {
    std::vector<StatePart> parts = source_.parameters->state.parts;
    for (StatePart& part : parts) part.name += fmt::format("/{}", suffix);
    return parts;
  }

  void check_names(const std::vector<StateVariable>& states) const {
    for (const StateVariable& state : states) {
      for (const auto& input : source_.graph->inputs()) {
        const bool of_state = std::any_of(module_.states.begin(), module_.states.end(),
                                          [&](const StateVariable& s) { return s.name == input->name; });
        if (!of_state && input->name == state.name)
          refuse_training("an input whose name is not that of the training state", fmt::format("'{}'", state.name),
                          ExitCode::bad_model);
      }
    }
  }

  // A prefix that no parameter begins with would freeze nothing, in silence.
  void check_frozen() const {
    for (const std::string& prefix : options_.frozen) {
      std::vector<std::string> names;
      for (const StateVariable& state : module_.states) names.push_back(state.name);
      if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(prefix); })) continue;
      const std::string meant = did_you_mean(prefix, names);
      const std::size_t shown = std::min<std::size_t>(names.size(), 8);
      refuse_training(fmt::format("frozen parameters' names to begin so; there are {}{}",
                                  fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                                  names.size() > shown ? ", .." : ""),
                      fmt::format("'{}'{}", prefix, meant.empty() ? "" : "; " + meant), ExitCode::usage);
    }
  }

  // Losses that take logits do the softmax or sigmoid themselves; a second one makes gradients small.
  void warn_of_prediction() const {
    if (!options_.warn) return;
    struct Row {
      std::string_view loss, op, wanted;
    };
    static constexpr Row kRows[] = {{"cross_entropy", "softmax", "logits"},
                                    {"bce_with_logits", "sigmoid", "logits"},
                                    {"nll", "softmax", "logarithms of probabilities"}};
    for (const auto& [name, value] : source_.graph->outputs()) {
      if (!options_.prediction.empty() && name != options_.prediction) continue;
      const Value* made = value;
      while (made->producer && made->producer->op->kind == OpKind::movement && made->producer->inputs[0])
        made = made->producer->inputs[0];
      for (const Row& row : kRows) {
        if (row.loss == options_.loss.name && made->producer && made->producer->op->name == row.op)
          options_.warn(
              fmt::format("the loss {} takes {}, and output '{}' is made by a {}; train on what goes into it (--train-output)",
                          row.loss, row.wanted, name, row.op));
      }
      return;
    }
  }

  Value* prediction(const ModelCopy& c) const {
    for (const auto& [name, value] : source_.graph->outputs()) {
      if (options_.prediction.empty() || name == options_.prediction) return c.values.at(value);
    }
    std::vector<std::string> names;
    for (const auto& output : source_.graph->outputs()) names.push_back(output.first);
    refuse_training(fmt::format("an output of the model as what the loss reads: {}", fmt::join(names, ", ")),
                    fmt::format("'{}'", options_.prediction), ExitCode::usage);
  }

  const LossRow& loss_row() const {
    const auto& rows = losses();
    return *std::find_if(rows.begin(), rows.end(), [&](const LossRow& r) { return r.name == options_.loss.name; });
  }

  Value* add_labels(const ModelCopy& c) {
    if (!loss_row().takes_labels) return nullptr;
    TensorType type = prediction(c)->type;
    if (loss_row().labels_are_classes) {
      if (type.rank() < 2) refuse_training("a prediction of classes along the last axis", type.text(), ExitCode::bad_model);
      limits_.clear();
      if (type.shape.back().is_constant()) {
        limits_.push_back({std::string(kLabels), type.shape.back().value(), {}});
        if (options_.loss.numbers.count("ignore_index"))
          limits_.back().also.push_back(integer_of(options_.loss.get("ignore_index", 0)));
      }
      type.dtype = DType::i64;
      type.shape.pop_back();
    }
    return c.graph->add_input(std::string(kLabels), type);
  }

  std::unique_ptr<Graph> predict() {
    ModelCopy c(source_, false);
    for (const auto& [name, value] : source_.graph->outputs()) c.graph->add_output(name, c.values.at(value));
    return finish(std::move(c), "predict");
  }

  std::unique_ptr<Graph> eval_step() {
    ModelCopy c(source_, false);
    Value* labels = add_labels(c);
    Builder b(*c.graph, "loss");
    c.graph->add_output("loss", loss_row().build(b, prediction(c), labels, options_.loss));
    if (loss_row().labels_are_classes) {
      Value* best = b.arg("argmax", prediction(c), -1, false);
      Value* right = b.cast(b.call("equal", {best, labels}), DType::i64);
      Ints axes;
      for (std::size_t i = 0; i < right->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
      c.graph->add_output("correct", b.reduce("reduce_sum", right, axes, false));
    }
    return finish(std::move(c), "eval_step");
  }

  // Loss and gradients of a batch; the result is the flat gradient.
  Value* differentiate(ModelCopy& c, Builder& b) {
    Value* labels = add_labels(c);
    Value* loss = loss_row().build(b, prediction(c), labels, options_.loss);
    c.graph->add_output("loss", loss);
    if (scales_loss()) {
      c.loss_scale.emplace(*c.graph, options_.mixed);
      loss = c.loss_scale->scaled(b, loss);
    }
    const std::vector<Value*> gradients = add_gradients(*c.graph, loss, c.trained);
    b.set_source("optimizer");
    return c.loss_scale ? c.loss_scale->unscaled(b, joined(b, gradients)) : joined(b, gradients);
  }

  bool scales_loss() const {
    const auto& rows = mixed_types();
    return std::any_of(rows.begin(), rows.end(),
                       [&](const MixedRow& r) { return r.name == options_.mixed.name && r.scales_loss; });
  }

  // The state's new value, unless the step is to be left out.
  static void update(ModelCopy& c, Builder& b, std::string name, Value* old, Value* next) {
    c.graph->add_output(std::move(name), c.bad ? b.where(c.bad, old, next) : next);
  }

  std::unique_ptr<Graph> train_step() {
    ModelCopy c(source_, true);
    Builder b(*c.graph, "loss");
    Value* gradients = differentiate(c, b);
    if (options_.accumulate) {
      const Accumulated old(c);
      Value* one = b.scalar(kTrainedType, 1);
      gradients = b.mul(b.add(old.sum, gradients), b.div(one, b.add(old.count, one)));
      c.graph->add_output(std::string(kGradients), b.expand(b.scalar(kTrainedType, 0), old.sum->type.shape));
      c.graph->add_output(std::string(kGradientCount), b.scalar(kTrainedType, 0));
    }
    if (c.loss_scale) {
      c.bad = LossScale::found_bad(b, gradients);
      c.loss_scale->update(*c.graph, b, c.bad);
    }
    update_parameters(c, b, gradients);
    return finish_step(std::move(c), b, "train_step");
  }

  std::unique_ptr<Graph> accumulate_step() {
    ModelCopy c(source_, true);
    Builder b(*c.graph, "loss");
    Value* gradients = differentiate(c, b);
    const Accumulated old(c);
    c.graph->add_output(std::string(kGradients), b.add(old.sum, gradients));
    c.graph->add_output(std::string(kGradientCount), b.add(old.count, 1.0));
    return finish_step(std::move(c), b, "accumulate_step");
  }

  std::unique_ptr<Graph> finish_step(ModelCopy c, Builder& b, std::string name) {
    if (c.statistics) update_statistics(c, b);
    if (c.random_step) {
      Value* one = b.exprs({Expr(1)}, {}, DType::u32);
      c.graph->add_output(std::string(kRandomStep), b.add(c.random_step, one));
      draws_ = true;
    }
    return finish(std::move(c), std::move(name));
  }

  Value* clipped(Builder& b, Value* g) const {
    if (const double limit = options_.optimizer.get("clip_value", 0); limit > 0)
      g = b.max(b.min(g, b.scalar(kTrainedType, limit)), b.scalar(kTrainedType, -limit));
    if (const double limit = options_.optimizer.get("clip_norm", 0); limit > 0) {
      const std::int64_t size = g->type.shape[0].value(), rows = (size + kSumRow - 1) / kSumRow;
      Value* padded = b.reshape(b.pad(b.mul(g, g), {Expr(0)}, {Expr(rows * kSumRow - size)}), {Expr(rows), Expr(kSumRow)});
      Value* norm = b.sqrt(b.reduce("reduce_sum", b.reduce("reduce_sum", padded, {1}, false), {0}, false));
      g = b.mul(g, b.min(b.div(b.scalar(kTrainedType, limit), b.add(norm, 1e-6)), b.scalar(kTrainedType, 1)));
    }
    if (options_.optimizer.get("maximize", 0) != 0) g = b.unary("neg", g);
    return g;
  }

  void update_parameters(ModelCopy& c, Builder& b, Value* gradients) {
    std::map<std::string, Value*, std::less<>> old;
    const auto state = [&](std::string name, auto make) {
      const auto known = old.find(name);
      if (known != old.end()) return known->second;
      StateVariable variable = make(name);
      Value* value = c.graph->add_input(name, variable.type);
      optimizer_states_.push_back(std::move(variable));
      return old[name] = value;
    };
    const auto scalar = [](double initial) {
      return [initial](const std::string& name) { return scalar_state(name, kTrainedType, initial); };
    };
    const auto flat_state = [&](std::string_view suffix, bool initially_parameters) {
      return [&, suffix, initially_parameters](const std::string& name) {
        StateVariable variable{name, source_.parameters->state.type, {}, named_parts(suffix)};
        if (initially_parameters) variable.initial = source_.parameters->state.initial;
        return variable;
      };
    };
    const auto inner_name = [](std::string_view name) { return fmt::format("optimizer.{}", name); };
    const NamedNumbers& numbers = options_.optimizer;
    OptimizerContext context{
        b,
        c.parameters,
        clipped(b, gradients),
        [&](std::string_view name, double otherwise) { return state(std::string(name), scalar(numbers.get(name, otherwise))); },
        [&](std::string_view name, double otherwise) { return numbers.get(name, otherwise); },
        [&](std::string_view name) { return state(inner_name(name), flat_state(name, false)); },
        [&](std::string_view name, double initial) { return state(inner_name(name), scalar(initial)); },
        [&](std::string_view name, Value* value) { update(c, b, inner_name(name), old.at(inner_name(name)), value); }};
    const auto& rows = optimizers();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const OptimizerRow& r) { return r.name == numbers.name; });
    Value* next = row->build(context);
    update(c, b, source_.parameters->state.name, c.parameters, next);
    if (numbers.get("ema", 0) > 0) {
      Value* average = state("ema", flat_state("ema", true));
      Value* keep = b.scalar(kTrainedType, numbers.get("ema", 0));
      update(c, b, "ema", average, b.fma(keep, b.sub(average, next), next));
    }
  }

  // running = momentum * running + (1 - momentum) * batch, the variance unbiased.
  void update_statistics(ModelCopy& c, Builder& b) {
    std::unordered_map<const Value*, Value*> next;
    for (const Node* node : c.graph->nodes()) {
      if (node->op->name != "batch_norm" || node->outputs.size() != 3) continue;
      const double momentum = node->get<double>("momentum");
      const Shape& x = node->inputs[0]->type.shape;
      const Expr count = floor_div(product(x), x[1]);
      Value* unbiased =
          b.div(b.cast(b.exprs({count}, {}), kTrainedType), b.cast(b.exprs({max(count - 1, Expr(1))}, {}), kTrainedType));
      b.set_source(node->source);
      const auto blend = [&](Value* running, Value* batch) {
        next[running] = b.add(b.mul(running, momentum), b.mul(b.reshape(batch, running->type.shape), 1 - momentum));
      };
      blend(node->inputs[3], node->output(1));
      blend(node->inputs[4], b.mul(node->output(2), unbiased));
    }
    std::vector<Value*> parts;
    for (const StatePart& part : source_.statistics->state.parts) {
      const Value* source = source_input(part.name);
      Value* running = c.values.at(source);
      parts.push_back(next.count(running) ? next.at(running) : running);
    }
    update(c, b, source_.statistics->state.name, c.statistics, joined(b, parts));
  }

  static std::unique_ptr<Graph> finish(ModelCopy c, std::string name) {
    c.graph->name = std::move(name);
    expand_training_layers(*c.graph);
    c.graph->erase_dead();
    return std::move(c.graph);
  }

  Module& module_;
  const TrainingOptions& options_;
  ModelSource source_;
  std::vector<StateVariable> optimizer_states_;
  std::vector<InputLimit> limits_;
  bool draws_ = false;  // random numbers
};

}  // namespace

std::vector<InputLimit> build_training(Module& module, const TrainingOptions& options) {
  OCLC_CHECK(module.entries.size() == 1, "a module with one entry");
  return TrainingBuilder(module, options).run();
}

}  // namespace oclc

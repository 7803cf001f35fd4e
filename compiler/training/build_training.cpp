#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "compiler/ir/copy.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/autodiff.h"
#include "compiler/support/error.h"
#include "compiler/training/init_entry.h"
#include "compiler/training/loss_scale.h"
#include "compiler/training/training.h"

namespace oclc {
namespace {

constexpr DType kDType = DType::f32;
// A flat tensor begins with the parts whose sizes keep the next one aligned to this many elements.
constexpr std::int64_t kAlignment = 16;
// Row length of the first of two summations over all gradients.
constexpr std::int64_t kSumRow = 4096;
constexpr std::string_view kLabels = "labels";
constexpr std::string_view kRandomStep = "random.step", kGradients = "gradients", kGradientCount = "gradients.count";

[[noreturn]] void refuse(std::string wanted, std::string found, ExitCode code = ExitCode::unsupported) {
  throw CompileError({.stage = "training", .wanted = std::move(wanted), .found = std::move(found), .exit_code = code});
}

// The model's tensors of one kind as slices of one state variable.
struct Flat {
  StateVariable state;
  std::unordered_map<std::string, const StatePart*> part_of;

  Flat(std::string name, std::vector<const StateVariable*> members) {
    std::stable_partition(members.begin(), members.end(),
                          [](const StateVariable* m) { return m->initial.elements() % kAlignment == 0; });
    std::int64_t total = 0;
    for (const StateVariable* m : members) {
      if (m->type.dtype != kDType) refuse("parameters of f32", fmt::format("'{}' of {}", m->name, m->type.text()));
      state.parts.push_back({m->name, total, m->initial.shape()});
      total += m->initial.elements();
    }
    for (const StatePart& part : state.parts) part_of[part.name] = &part;
    state.name = std::move(name);
    state.type = {kDType, {Expr(total)}};
    state.initial = HostTensor(kDType, {total});
    std::byte* to = state.initial.mutable_data();
    for (const StateVariable* m : members) {
      std::memcpy(to, m->initial.data(), m->initial.bytes());
      to += m->initial.bytes();
    }
  }

  bool empty() const { return state.parts.empty(); }
};

Value* piece(Builder& b, Value* flat, const StatePart& part) {
  const Shape shape(part.shape.begin(), part.shape.end());
  return b.reshape(b.slice_axis(flat, 0, Expr(part.offset), product(shape)), shape);
}

Value* joined(Builder& b, const std::vector<Value*>& parts) {
  std::vector<Value*> flat;
  for (Value* v : parts) flat.push_back(b.reshape(v, {v->type.elements()}));
  return flat.size() == 1 ? flat[0] : b.concat(flat, 0);
}

bool is_statistic(const Value* input) {
  return !input->users.empty() && std::all_of(input->users.begin(), input->users.end(), [&](const Node* user) {
    return user->op->name == "batch_norm" && (user->inputs[3] == input || user->inputs[4] == input);
  });
}

class TrainingBuilder {
 public:
  TrainingBuilder(Module& module, const TrainingOptions& options)
      : module_(module), options_(options), source_(std::move(module.entries.at(0))) {
    std::vector<const StateVariable*> parameters, statistics;
    for (const StateVariable& state : module.states) {
      if (std::any_of(options.frozen.begin(), options.frozen.end(),
                      [&](const std::string& prefix) { return state.name.starts_with(prefix); }))
        frozen_.push_back(&state);
      else if (is_statistic(source_input(state.name)))
        statistics.push_back(&state);
      else
        parameters.push_back(&state);
    }
    if (parameters.empty()) refuse("parameters to train", "none", ExitCode::bad_model);
    for (const auto& input : source_->inputs()) {
      if (input->name == kLabels)
        refuse(fmt::format("a model without an input '{}', the name of the loss's targets", kLabels), "one",
               ExitCode::bad_model);
    }
    parameters_ = std::make_unique<Flat>("parameters", std::move(parameters));
    statistics_ = std::make_unique<Flat>("statistics", std::move(statistics));
  }

  std::vector<InputLimit> run() {
    std::vector<std::unique_ptr<Graph>> entries;
    entries.push_back(predict());
    entries.push_back(train_step());
    entries.push_back(eval_step());
    if (options_.accumulate) entries.push_back(accumulate_step());
    std::vector<StateVariable> states{parameters_->state};
    if (!statistics_->empty()) states.push_back(statistics_->state);
    states.insert(states.end(), optimizer_states_.begin(), optimizer_states_.end());
    if (options_.accumulate) {
      states.push_back({std::string(kGradients), parameters_->state.type, {}, named_parts("gradient")});
      states.push_back(scalar_state(kGradientCount, kDType, 0));
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
  // A copy of the source graph over the flat state.
  struct Copy {
    std::unique_ptr<Graph> graph = std::make_unique<Graph>();
    std::unordered_map<const Value*, Value*> values;
    Value* parameters = nullptr;
    Value* statistics = nullptr;
    std::vector<Value*> trained;  // in the order of the parts
    Value* random_step = nullptr;
    Value* random_seed = nullptr;
    std::int64_t dropouts = 0;
    std::optional<LossScale> loss_scale;
    Value* bad = nullptr;  // true: the step changes no state but the loss scale
  };

  // The sum of the gradients of accumulate_step, and of how many batches it is.
  struct Accumulated {
    Value *sum, *count;
    explicit Accumulated(Copy& c)
        : sum(c.graph->add_input(std::string(kGradients), c.parameters->type)),
          count(c.graph->add_input(std::string(kGradientCount), {kDType, {}})) {}
  };

  const Value* source_input(const std::string& name) const {
    for (const auto& input : source_->inputs()) {
      if (input->name == name) return input.get();
    }
    refuse(fmt::format("an input for the state '{}'", name), "none", ExitCode::bad_model);
  }

  static StateVariable scalar_state(std::string_view name, DType dtype, double value) {
    const HostTensor initial = HostTensor::scalar(dtype, value);
    return {std::string(name), initial.type(), initial, {}};
  }

  // The parameters' parts under the names "<parameter>/<suffix>".
  std::vector<StatePart> named_parts(std::string_view suffix) const {
    std::vector<StatePart> parts = parameters_->state.parts;
    for (StatePart& part : parts) part.name += fmt::format("/{}", suffix);
    return parts;
  }

  void check_names(const std::vector<StateVariable>& states) const {
    for (const StateVariable& state : states) {
      for (const auto& input : source_->inputs()) {
        const bool of_state = std::any_of(module_.states.begin(), module_.states.end(),
                                          [&](const StateVariable& s) { return s.name == input->name; });
        if (!of_state && input->name == state.name)
          refuse("an input whose name is not that of the training state", fmt::format("'{}'", state.name), ExitCode::bad_model);
      }
    }
  }

  Copy copy(bool training) {
    Copy c;
    Builder b(*c.graph);
    c.parameters = c.graph->add_input(parameters_->state.name, parameters_->state.type);
    if (!statistics_->empty()) c.statistics = c.graph->add_input(statistics_->state.name, statistics_->state.type);
    std::unordered_map<std::string, Value*> made;
    for (const StatePart& part : parameters_->state.parts) {
      b.set_source(part.name);
      c.trained.push_back(made[part.name] = piece(b, c.parameters, part));
    }
    for (const StatePart& part : statistics_->state.parts) {
      b.set_source(part.name);
      made[part.name] = piece(b, c.statistics, part);
    }
    for (const StateVariable* state : frozen_) made[state->name] = b.constant(state->initial, state->name);
    for (const auto& input : source_->inputs()) {
      const auto state = made.find(input->name);
      c.values[input.get()] = state == made.end() ? c.graph->add_input(input->name, input->type) : state->second;
    }
    for (const Node* node : source_->nodes()) copy_node(*node, training, c);
    return c;
  }

  static void copy_node(const Node& node, bool training, Copy& c) {
    std::vector<Value*> inputs;
    for (const Value* input : node.inputs) inputs.push_back(input ? c.values.at(input) : nullptr);
    auto attributes = node.attributes;
    // With frozen statistics it normalises by them, in training too.
    if (node.op->name == "batch_norm") attributes["training"] = std::int64_t{training && !constant_of(inputs[3]) ? 1 : 0};
    if (node.op->name == "dropout" && training) {
      if (!c.random_step) {
        c.random_step = c.graph->add_input(std::string(kRandomStep), {DType::u32, {}});
        c.random_seed = c.graph->add_input(std::string(kRandomSeed), {DType::u32, {}});
      }
      inputs.insert(inputs.end(), {c.random_step, c.random_seed});
      attributes["layer"] = c.dropouts++;
    }
    if (training) check_bodies(node);
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& body : node.bodies) bodies.push_back(copy_graph(*body));
    Node* copied = c.graph->add(*node.op, std::move(inputs), std::move(attributes), node.source, nullptr, std::move(bodies));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      copied->output(i)->name = node.output(i)->name;
      c.values[node.output(i)] = copied->output(i);
    }
  }

  // Batch statistics and random masks would have to leave the body.
  static void check_bodies(const Node& node) {
    for (const auto& body : node.bodies) {
      for (const Node* inner : body->nodes()) {
        if (inner->op->name == "batch_norm" || inner->op->name == "dropout")
          refuse("no batch normalisation or dropout inside of control flow", fmt::format("node '{}'", inner->source));
        check_bodies(*inner);
      }
    }
  }

  Value* prediction(const Copy& c) const {
    for (const auto& [name, value] : source_->outputs()) {
      if (options_.prediction.empty() || name == options_.prediction) return c.values.at(value);
    }
    refuse(fmt::format("an output '{}'", options_.prediction), fmt::format("{} outputs without it", source_->outputs().size()),
           ExitCode::usage);
  }

  const LossRow& loss_row() const {
    const auto& rows = losses();
    return *std::find_if(rows.begin(), rows.end(), [&](const LossRow& r) { return r.name == options_.loss.name; });
  }

  Value* add_labels(const Copy& c) {
    TensorType type = prediction(c)->type;
    if (loss_row().labels_are_classes) {
      if (type.rank() < 2) refuse("a prediction of classes along the last axis", type.text(), ExitCode::bad_model);
      limits_.clear();
      if (type.shape.back().is_constant()) {
        limits_.push_back({std::string(kLabels), type.shape.back().value(), {}});
        if (options_.loss.numbers.count("ignore_index"))
          limits_.back().also.push_back(static_cast<std::int64_t>(options_.loss.get("ignore_index", 0)));
      }
      type.dtype = DType::i64;
      type.shape.pop_back();
    }
    return c.graph->add_input(std::string(kLabels), type);
  }

  std::unique_ptr<Graph> predict() {
    Copy c = copy(false);
    for (const auto& [name, value] : source_->outputs()) c.graph->add_output(name, c.values.at(value));
    return finish(std::move(c), "predict");
  }

  std::unique_ptr<Graph> eval_step() {
    Copy c = copy(false);
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
  Value* differentiate(Copy& c, Builder& b) {
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
  static void update(Copy& c, Builder& b, std::string name, Value* old, Value* next) {
    c.graph->add_output(std::move(name), c.bad ? b.where(c.bad, old, next) : next);
  }

  std::unique_ptr<Graph> train_step() {
    Copy c = copy(true);
    Builder b(*c.graph, "loss");
    Value* gradients = differentiate(c, b);
    if (options_.accumulate) {
      const Accumulated old(c);
      Value* one = b.scalar(kDType, 1);
      gradients = b.mul(b.add(old.sum, gradients), b.div(one, b.add(old.count, one)));
      c.graph->add_output(std::string(kGradients), b.expand(b.scalar(kDType, 0), old.sum->type.shape));
      c.graph->add_output(std::string(kGradientCount), b.scalar(kDType, 0));
    }
    if (c.loss_scale) {
      c.bad = LossScale::found_bad(b, gradients);
      c.loss_scale->update(*c.graph, b, c.bad);
    }
    update_parameters(c, b, gradients);
    return finish_step(std::move(c), b, "train_step");
  }

  std::unique_ptr<Graph> accumulate_step() {
    Copy c = copy(true);
    Builder b(*c.graph, "loss");
    Value* gradients = differentiate(c, b);
    const Accumulated old(c);
    c.graph->add_output(std::string(kGradients), b.add(old.sum, gradients));
    c.graph->add_output(std::string(kGradientCount), b.add(old.count, 1.0));
    return finish_step(std::move(c), b, "accumulate_step");
  }

  std::unique_ptr<Graph> finish_step(Copy c, Builder& b, std::string name) {
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
      g = b.max(b.min(g, b.scalar(kDType, limit)), b.scalar(kDType, -limit));
    if (const double limit = options_.optimizer.get("clip_norm", 0); limit > 0) {
      const std::int64_t size = g->type.shape[0].value(), rows = (size + kSumRow - 1) / kSumRow;
      Value* padded = b.reshape(b.pad(b.mul(g, g), {Expr(0)}, {Expr(rows * kSumRow - size)}), {Expr(rows), Expr(kSumRow)});
      Value* norm = b.sqrt(b.reduce("reduce_sum", b.reduce("reduce_sum", padded, {1}, false), {0}, false));
      g = b.mul(g, b.min(b.div(b.scalar(kDType, limit), b.add(norm, 1e-6)), b.scalar(kDType, 1)));
    }
    return g;
  }

  void update_parameters(Copy& c, Builder& b, Value* gradients) {
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
      return [initial](const std::string& name) { return scalar_state(name, kDType, initial); };
    };
    const auto flat_state = [&](std::string_view suffix, bool initially_parameters) {
      return [&, suffix, initially_parameters](const std::string& name) {
        StateVariable variable{name, parameters_->state.type, {}, named_parts(suffix)};
        if (initially_parameters) variable.initial = parameters_->state.initial;
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
    update(c, b, parameters_->state.name, c.parameters, next);
    if (numbers.get("ema", 0) > 0) {
      Value* average = state("ema", flat_state("ema", true));
      Value* keep = b.scalar(kDType, numbers.get("ema", 0));
      update(c, b, "ema", average, b.fma(keep, b.sub(average, next), next));
    }
  }

  // running = momentum * running + (1 - momentum) * batch, the variance unbiased.
  void update_statistics(Copy& c, Builder& b) {
    std::unordered_map<const Value*, Value*> next;
    for (const Node* node : c.graph->nodes()) {
      if (node->op->name != "batch_norm" || node->outputs.size() != 3) continue;
      const double momentum = node->get<double>("momentum");
      const Shape& x = node->inputs[0]->type.shape;
      const Expr count = floor_div(product(x), x[1]);
      Value* unbiased = b.div(b.cast(b.exprs({count}, {}), kDType), b.cast(b.exprs({max(count - 1, Expr(1))}, {}), kDType));
      b.set_source(node->source);
      const auto blend = [&](Value* running, Value* batch) {
        next[running] = b.add(b.mul(running, momentum), b.mul(b.reshape(batch, running->type.shape), 1 - momentum));
      };
      blend(node->inputs[3], node->output(1));
      blend(node->inputs[4], b.mul(node->output(2), unbiased));
    }
    std::vector<Value*> parts;
    for (const StatePart& part : statistics_->state.parts) {
      const Value* source = source_input(part.name);
      Value* running = c.values.at(source);
      parts.push_back(next.count(running) ? next.at(running) : running);
    }
    update(c, b, statistics_->state.name, c.statistics, joined(b, parts));
  }

  static std::unique_ptr<Graph> finish(Copy c, std::string name) {
    c.graph->name = std::move(name);
    expand_training_layers(*c.graph);
    c.graph->erase_dead();
    return std::move(c.graph);
  }

  Module& module_;
  const TrainingOptions& options_;
  std::unique_ptr<Graph> source_;
  std::unique_ptr<Flat> parameters_, statistics_;
  std::vector<const StateVariable*> frozen_;
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

#include "frontends/cpp/typed/training_module.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ops/builder.h"
#include "compiler/ops/gradients/autodiff.h"
#include "compiler/support/error.h"
#include "frontends/cpp/parameters.h"

namespace oclc::typed {
namespace {

constexpr std::int64_t kAlignedElements = 16;
constexpr std::string_view kParameters = "parameters", kMomentum = "momentum", kHyper = "hyper";

class TrainingModule {
 public:
  TrainingModule(std::span<const LayerSpec> layers, const ModuleOptions& options)
      : layers_(layers), options_(options), parts_(parts_of(layers)) {
    OCLC_CHECK(!layers.empty(), "a network without layers");
    inputs_ = layers.front().inputs;
    outputs_ = layers.back().outputs;
    for (const Part& part : parts_) total_ += elements(part);
  }

  std::shared_ptr<Module> run() {
    module_->name = options_.name;
    module_->symbols = {rows_, steps_};
    if (options_.batch == 0) module_->symbols.push_back(batch_);
    add_states();
    predict();
    train_step();
    if (options_.train_loop) train();
    return std::move(module_);
  }

 private:
  static std::int64_t elements(const Part& part) {
    std::int64_t n = 1;
    for (const std::int64_t d : part.place.shape) n *= d;
    return n;
  }

  static Shape shape_of(const Part& part) { return {part.place.shape.begin(), part.place.shape.end()}; }
  static TensorType floats(Shape shape) { return {DType::f32, std::move(shape)}; }
  TensorType state_type() const { return floats({Expr(total_)}); }
  TensorType hyper_type() const { return floats({Expr(static_cast<std::int64_t>(parts_.size())), 3}); }

  void add_states() {
    HostTensor initial(DType::f32, {total_});
    const nn::Parameters source = nn::initial_parameters(options_.seed);
    std::vector<StatePart> weights, moments;
    for (const Part& part : parts_) {
      weights.push_back(part.place);
      moments.push_back(part.place);
      moments.back().name += "/momentum";
      if (part.is_bias) continue;
      // The source counts the last dimension as inputs.
      const HostTensor values = source(part.place.name, {part.place.shape[1], part.place.shape[0]});
      std::copy_n(values.data(), values.bytes(), initial.mutable_data() + part.place.offset * 4);
    }
    module_->states.push_back({std::string(kParameters), state_type(), initial, std::move(weights)});
    module_->states.push_back({std::string(kMomentum), state_type(), {}, std::move(moments)});
    module_->states.push_back({std::string(kHyper), hyper_type(), {}, {}});
  }

  Graph& entry(const std::string& name) {
    Graph& graph = *module_->entries.emplace_back(std::make_unique<Graph>());
    graph.name = name;
    return graph;
  }

  // The parts of a flat state.
  std::vector<Value*> split(Builder& b, Value* flat) const {
    std::vector<Value*> values;
    for (const Part& part : parts_)
      values.push_back(b.reshape(b.slice_axis(flat, 0, part.place.offset, elements(part)), shape_of(part)));
    return values;
  }

  Value* join(Builder& b, const std::vector<Value*>& values) const {
    std::vector<Value*> flat;
    for (std::size_t i = 0; i < values.size(); ++i) flat.push_back(b.reshape(values[i], {Expr(elements(parts_[i]))}));
    return flat.size() == 1 ? flat[0] : b.concat(std::move(flat), 0);
  }

  Value* find(const std::vector<Value*>& values, std::size_t layer, bool is_bias) const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].layer == layer && parts_[i].is_bias == is_bias) return values[i];
    }
    check_failed("part", "training_module.cpp", 0, "a layer without parameters");
  }

  // Layers [0, end).
  Value* forward(Builder& b, Value* x, const std::vector<Value*>& weights, std::size_t end) const {
    for (std::size_t i = 0; i < end; ++i) {
      b.set_source(fmt::format("layer{}", i));
      switch (layers_[i].kind) {
        case LayerKind::linear:
          x = b.add(b.matmul(x, find(weights, i, false)), find(weights, i, true));
          break;
        case LayerKind::tanh:
          x = b.tanh(x);
          break;
        case LayerKind::relu:
          x = b.relu(x);
          break;
        case LayerKind::sigmoid:
        case LayerKind::logit:
          x = b.sigmoid(x);
          break;
        case LayerKind::softmax:
          x = b.softmax(x);
          break;
      }
    }
    return x;
  }

  Value* loss(Builder& b, Value* x, Value* y, const std::vector<Value*>& weights) const {
    const LayerKind last = layers_.back().kind;
    const bool inside = last == LayerKind::logit || last == LayerKind::softmax;
    Value* out = forward(b, x, weights, layers_.size() - (inside ? 1 : 0));
    b.set_source("loss");
    Value* each = nullptr;
    if (last == LayerKind::logit) {
      each = b.sub(b.unary("softplus", out), b.mul(y, out));
    } else if (last == LayerKind::softmax) {
      each = b.unary("neg", b.mul(y, b.log_softmax(out)));
    } else {
      Value* error = b.sub(out, y);
      each = b.mul(b.mul(error, error), 0.5);
    }
    return b.reduce("reduce_mean", b.reduce("reduce_sum", each, {1}, false), {0}, false);
  }

  struct Updated {
    Value *loss, *parameters, *momentum;
  };

  Updated step(Builder& b, Value* x, Value* y, Value* hyper, Value* parameters, Value* momentum) const {
    const std::vector<Value*> weights = split(b, parameters), moments = split(b, momentum);
    Value* value = loss(b, x, y, weights);
    const std::vector<Value*> gradients = add_gradients(b.graph(), value, weights);
    std::vector<Value*> new_weights, new_moments;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      b.set_source(parts_[i].place.name);
      const auto number = [&](std::int64_t column) {
        return b.reshape(b.slice(hyper, {Expr(static_cast<std::int64_t>(i)), Expr(column)}, {1, 1}, {1, 1}), {});
      };
      Value *w = weights[i], *v = b.mul(moments[i], number(1));
      v = b.add(b.add(v, gradients[i]), b.mul(w, number(2)));
      new_moments.push_back(v);
      new_weights.push_back(b.sub(w, b.mul(v, number(0))));
    }
    b.set_source("update");
    return {value, join(b, new_weights), join(b, new_moments)};
  }

  void predict() {
    Graph& graph = entry("predict");
    Builder b(graph);
    Value* x = graph.add_input("x", floats({rows_, inputs_}));
    Value* parameters = graph.add_input(std::string(kParameters), state_type());
    graph.add_output("y", forward(b, x, split(b, parameters), layers_.size()));
  }

  void train_step() {
    Graph& graph = entry("train_step");
    Builder b(graph);
    Value* x = graph.add_input("x", floats({batch_, inputs_}));
    Value* y = graph.add_input("y", floats({batch_, outputs_}));
    Value* hyper = graph.add_input(std::string(kHyper), hyper_type());
    Value* parameters = graph.add_input(std::string(kParameters), state_type());
    Value* momentum = graph.add_input(std::string(kMomentum), state_type());
    const Updated updated = step(b, x, y, hyper, parameters, momentum);
    graph.add_output("loss", updated.loss);
    graph.add_output(std::string(kParameters), updated.parameters);
    graph.add_output(std::string(kMomentum), updated.momentum);
  }

  void train() {
    Graph& graph = entry("train");
    Builder b(graph, "train");
    const TensorType xs_type = floats({steps_, batch_, inputs_}), ys_type = floats({steps_, batch_, outputs_});
    Value* xs = graph.add_input("xs", xs_type);
    Value* ys = graph.add_input("ys", ys_type);
    Value* hyper = graph.add_input(std::string(kHyper), hyper_type());
    Value* parameters = graph.add_input(std::string(kParameters), state_type());
    Value* momentum = graph.add_input(std::string(kMomentum), state_type());
    auto body = std::make_unique<Graph>();
    body->name = "step";
    Value* carried_parameters = body->add_input(std::string(kParameters), state_type());
    Value* carried_momentum = body->add_input(std::string(kMomentum), state_type());
    Value* all_x = body->add_input("xs", xs_type);
    Value* all_y = body->add_input("ys", ys_type);
    Value* body_hyper = body->add_input(std::string(kHyper), hyper_type());
    Builder inner(*body, "train");
    const Expr trip = Expr::axis("step", steps_);
    Value* x = inner.reshape(inner.slice_axis(all_x, 0, trip, 1), {batch_, inputs_});
    Value* y = inner.reshape(inner.slice_axis(all_y, 0, trip, 1), {batch_, outputs_});
    const Updated updated = step(inner, x, y, body_hyper, carried_parameters, carried_momentum);
    body->add_output(std::string(kParameters), updated.parameters);
    body->add_output(std::string(kMomentum), updated.momentum);
    body->add_output("loss", updated.loss);
    const Node* loop = b.loop(steps_, "step", {parameters, momentum}, {xs, ys, hyper}, std::move(body));
    graph.add_output("losses", loop->output(2));
    graph.add_output(std::string(kParameters), loop->output(0));
    graph.add_output(std::string(kMomentum), loop->output(1));
  }

  std::span<const LayerSpec> layers_;
  const ModuleOptions& options_;
  const std::vector<Part> parts_;
  std::int64_t total_ = 0, inputs_ = 0, outputs_ = 0;
  const Expr rows_ = Expr::symbol("N"), steps_ = Expr::symbol("steps", 1, 1 << 24);
  const Expr batch_ = options_.batch == 0 ? Expr::symbol("batch") : Expr(options_.batch);
  std::shared_ptr<Module> module_ = std::make_shared<Module>();
};

}  // namespace

std::vector<Part> parts_of(std::span<const LayerSpec> layers) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].kind != LayerKind::linear) continue;
    parts.push_back({i, false, {fmt::format("layer{}.weight", i), 0, {layers[i].inputs, layers[i].outputs}}});
    parts.push_back({i, true, {fmt::format("layer{}.bias", i), 0, {layers[i].outputs}}});
  }
  const auto elements = [](const Part& part) {
    std::int64_t n = 1;
    for (const std::int64_t d : part.place.shape) n *= d;
    return n;
  };
  std::stable_partition(parts.begin(), parts.end(), [&](const Part& part) { return elements(part) % kAlignedElements == 0; });
  std::int64_t offset = 0;
  for (Part& part : parts) {
    part.place.offset = offset;
    offset += elements(part);
  }
  return parts;
}

std::shared_ptr<Module> training_module(std::span<const LayerSpec> layers, const ModuleOptions& options) {
  return TrainingModule(layers, options).run();
}

}  // namespace oclc::typed

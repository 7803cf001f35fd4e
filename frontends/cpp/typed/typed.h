// Networks whose shapes are types: a layer that does not fit the one before it does not compile.
//
//   using Net = typed::Sequential<typed::Linear<2, 40>, typed::Tanh, typed::Linear<40, 1>, typed::Logit>;
//   Net net({.hyper = {.learning_rate = 0.1f, .momentum = 0.9f, .l2 = 1e-5f}});
//   net.hyper<2>({.learning_rate = 0.01f});          // of layer 2 alone
//   net.train(points, labels);                       // a step for each point, all in one launch
//   const float p = net.predict({0.5f, 0.25f})[0];
//
// Layers are counted from 0, activations too.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "frontends/cpp/typed/engine.h"

namespace oclc::typed {

// y[o] = sum over i of x[i] * weight[i, o] + bias[o]
template <int Inputs, int Outputs>
struct Linear {
  static_assert(Inputs > 0 && Outputs > 0, "typed network: the sizes of a linear layer are positive");
  static constexpr LayerKind kind = LayerKind::linear;
  static constexpr int inputs = Inputs, outputs = Outputs;
};

// Activations have the size of the layer before them.
struct Tanh {
  static constexpr LayerKind kind = LayerKind::tanh;
};
struct Relu {
  static constexpr LayerKind kind = LayerKind::relu;
};
struct Sigmoid {
  static constexpr LayerKind kind = LayerKind::sigmoid;
};
// At the end: the probability that the output is 1; trained on the cross entropy.
struct Logit {
  static constexpr LayerKind kind = LayerKind::logit;
};
// At the end: probabilities of exclusive classes; trained on the cross entropy with labels of one 1 in zeros.
struct Softmax {
  static constexpr LayerKind kind = LayerKind::softmax;
};

namespace detail {

template <class T>
concept Layer = requires {
  { T::kind } -> std::convertible_to<LayerKind>;
};
template <class T>
concept Sized = Layer<T> && requires {
  T::inputs, T::outputs;
};

// Instantiated for each layer with a size of its own, so that a mismatch is reported with the three of them.
template <int Given, int Wanted, class AtLayer>
struct Fits {
  static_assert(Given == Wanted,
                "typed network: the layer before gives another number of values than this layer takes "
                "(oclc::typed::detail::Fits<Given, Wanted, AtLayer> names both and the layer)");
  static constexpr bool value = true;  // one report is enough
};

// Output size after the layers, each checked against the one before; `Width` goes in.
template <int Width, class... Layers>
struct Chain {
  static constexpr int outputs = Width;
};
template <int Width, class First, class... Rest>
struct Chain<Width, First, Rest...> {
  static_assert(Layer<First>, "typed network: this is no layer (Linear<Inputs, Outputs>, Tanh, Relu, Sigmoid, Logit, Softmax)");
  static_assert((First::kind != LayerKind::logit && First::kind != LayerKind::softmax) || sizeof...(Rest) == 0,
                "typed network: Logit and Softmax stand at the end; use Sigmoid between layers");
  static constexpr int width() {
    if constexpr (Sized<First>) {
      static_assert(Fits<Width, First::inputs, First>::value);
      return First::outputs;
    } else {
      return Width;
    }
  }
  static constexpr int outputs = Chain<width(), Rest...>::outputs;
};

template <class First, class... Rest>
struct Ends {
  static_assert(Sized<First>, "typed network: the first layer says how many values come in: wanted Linear<Inputs, Outputs>");
  static constexpr int inputs = First::inputs;
  static constexpr int outputs = Chain<First::inputs, First, Rest...>::outputs;
};

}  // namespace detail

template <class... Layers>
class Sequential {
  static_assert(sizeof...(Layers) > 0, "typed network: wanted at least one layer");

 public:
  static constexpr int kInputs = detail::Ends<Layers...>::inputs, kOutputs = detail::Ends<Layers...>::outputs;
  using Input = std::array<float, static_cast<std::size_t>(kInputs)>;
  using Output = std::array<float, static_cast<std::size_t>(kOutputs)>;

  explicit Sequential(const Options& options = {}) : engine_(std::make_shared<Engine>(specs(), options)) {}

  // What only predicts; sees the parameters as training leaves them.
  class Inference {
   public:
    Output predict(const Input& x) const {
      Output y{};
      engine_->predict(x, y);
      return y;
    }
    // Rows of inputs to rows of outputs.
    std::vector<float> predict(std::span<const float> xs) const {
      std::vector<float> ys(xs.size() / static_cast<std::size_t>(kInputs) * static_cast<std::size_t>(kOutputs));
      engine_->predict(xs, ys);
      return ys;
    }

   private:
    friend class Sequential;
    explicit Inference(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
    std::shared_ptr<Engine> engine_;
  };

  // What trains the same parameters.
  class Training {
   public:
    // One step on Options::batch rows; the loss before it.
    float train_step(std::span<const float> x, std::span<const float> y) { return engine_->train_step(x, y); }
    // A step for each batch of rows, in order, in one launch if the network is small; the losses.
    std::vector<float> train(std::span<const float> xs, std::span<const float> ys) { return engine_->train(xs, ys); }

   private:
    friend class Sequential;
    explicit Training(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
    std::shared_ptr<Engine> engine_;
  };

  Inference inference() const { return Inference(engine_); }
  Training training() { return Training(engine_); }

  Output predict(const Input& x) const { return inference().predict(x); }
  std::vector<float> predict(std::span<const float> xs) const { return inference().predict(xs); }
  float train_step(const Input& x, const Output& y) { return engine_->train_step(x, y); }
  float train_step(std::span<const float> x, std::span<const float> y) { return engine_->train_step(x, y); }
  std::vector<float> train(std::span<const float> xs, std::span<const float> ys) { return engine_->train(xs, ys); }

  // Of one layer, or of all, from the next step on.
  template <std::size_t LayerIndex>
  void hyper(const HyperParameters& values) {
    check_parameters<LayerIndex>();
    engine_->set_hyper(LayerIndex, values);
  }
  void hyper(const HyperParameters& values) {
    for (std::size_t i = 0; i < sizeof...(Layers); ++i) engine_->set_hyper(i, values);
  }

  // weight[inputs, outputs], bias[outputs]
  template <std::size_t LayerIndex>
  std::vector<float> weight() const {
    check_parameters<LayerIndex>();
    return engine_->parameter(LayerIndex, false);
  }
  template <std::size_t LayerIndex>
  std::vector<float> bias() const {
    check_parameters<LayerIndex>();
    return engine_->parameter(LayerIndex, true);
  }
  template <std::size_t LayerIndex>
  void set_weight(std::span<const float> values) {
    check_parameters<LayerIndex>();
    engine_->set_parameter(LayerIndex, false, values);
  }
  template <std::size_t LayerIndex>
  void set_bias(std::span<const float> values) {
    check_parameters<LayerIndex>();
    engine_->set_parameter(LayerIndex, true, values);
  }

  Engine& engine() { return *engine_; }

 private:
  template <std::size_t LayerIndex>
  static constexpr void check_parameters() {
    static_assert(LayerIndex < sizeof...(Layers), "typed network: there is no layer of this number");
    static_assert(detail::Sized<std::tuple_element_t<LayerIndex, std::tuple<Layers...>>>,
                  "typed network: an activation has no parameters; layers are counted from 0, activations too");
  }

  static std::vector<LayerSpec> specs() {
    std::vector<LayerSpec> list;
    std::int64_t width = kInputs;
    const auto append = [&]<class L>(std::type_identity<L>) {
      const std::int64_t inputs = width;
      if constexpr (detail::Sized<L>) width = L::outputs;
      list.push_back({L::kind, inputs, width});
    };
    (append(std::type_identity<Layers>{}), ...);
    return list;
  }

  std::shared_ptr<Engine> engine_;
};

}  // namespace oclc::typed

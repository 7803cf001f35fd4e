// From the description of a layered network to a module whose entries share its parameters:
//
//   predict     x[N, inputs] -> y[N, outputs]
//   train_step  x[batch, inputs], y[batch, outputs] -> loss, new parameters
//   train       xs[steps, batch, inputs], ys[steps, batch, outputs] -> losses[steps], new parameters
//
// State: "parameters" and "momentum", flat, with a part "layer<i>.weight" [inputs, outputs] and "layer<i>.bias" [outputs] for
// each linear layer (momentum: "layer<i>.weight/momentum", ...); parts whose size 16 divides come first. "hyper" [parts, 3]:
// row p belongs to part p, learning rate, momentum, l2.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc::typed {

enum class LayerKind { linear, tanh, relu, sigmoid, logit, softmax };

struct LayerSpec {
  LayerKind kind = LayerKind::linear;
  std::int64_t inputs = 0, outputs = 0;
};

struct ModuleOptions {
  std::string name = "network";
  std::int64_t batch = 1;  // rows of a training step; 0: bound when a step runs
  std::uint64_t seed = 0;  // of the initial parameters
  bool train_loop = true;  // with the entry `train`
};

// Where the parameters of layer `layer` lie, in the order of the parts.
struct Part {
  std::size_t layer = 0;
  bool is_bias = false;
  StatePart place;
};
std::vector<Part> parts_of(std::span<const LayerSpec> layers);

// The loss of a step is the mean over its rows of: the binary cross entropy, summed over the outputs, if the last layer is a
// logit; the cross entropy if it is a softmax; else half the squared error. With the gradient g of the loss the parameters w
// move by v = momentum * v + g + l2 * w, w = w - learning_rate * v.
std::shared_ptr<Module> training_module(std::span<const LayerSpec> layers, const ModuleOptions& options);

}  // namespace oclc::typed

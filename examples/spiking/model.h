// The network of a step of 1 ms: what goes from step to step is state of the plan.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/carry.h"
#include "examples/spiking/ensembles.h"
#include "frontends/cpp/nn.h"

namespace spiking {

constexpr std::int64_t kDims = 256;                  // of the vectors that are bound
constexpr std::int64_t kRows = 4 * (kDims / 2 + 1);  // products of real and imaginary parts of their spectra
constexpr std::int64_t kLearners = 100;              // neurons whose decoders are learnt
constexpr double kRadius = 2.0;

namespace nn = oclc::nn;

// A network whose states feed themselves.
class StepNetwork {
 public:
  StepNetwork(const std::string& rules);

  nn::Network net;
  std::vector<oclc::Carry> carries;

  // A state of zeros at first; `next` says once what it is in the next step.
  nn::Tensor state(const std::string& name, std::vector<std::int64_t> shape);
  void next(const std::string& name, const nn::Tensor& value);
  // Exponential synapse: the low-passed value of u, this step's included.
  nn::Tensor low_pass(const std::string& name, const nn::Tensor& u, double tau);
  nn::Tensor constant(const std::vector<float>& values, std::vector<std::int64_t> shape);
  // Spikes [count, neurons] at these currents, and the voltages after the step.
  nn::Tensor spikes(const std::string& name, const nn::Tensor& currents, nn::Tensor* voltages = nullptr);
};

// Inputs a, b [1, 256]: vectors. Input x [1, 1]: a number to learn of. Outputs c [1, 256]: their circular convolution as
// neurons compute it; raster [1, 100], target and learnt [1, 1]: the neurons that see x, x^2, and what was learnt of it. State
// w0, w1, w2: weights under the voltage rule.
std::shared_ptr<oclc::Module> spiking_module(const std::string& rules, std::int64_t neurons);

// sum over i of a[i] b[(k - i) mod n].
std::vector<float> circular_convolution(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace spiking

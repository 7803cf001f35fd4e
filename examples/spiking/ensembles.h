// Groups of leaky integrate-and-fire neurons that represent a number each: their tuning, and decoders by least squares
// (Eliasmith and Anderson, Neural Engineering, 2003).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace spiking {

constexpr double kStep = 1e-3, kTauRc = 20e-3, kTauRef = 2e-3;  // seconds, as the operator spiking.LIF's attributes

// `count` groups of `neurons` each, for numbers in [-radius, radius]: the current of a neuron is gain * x + bias.
struct Ensembles {
  Ensembles(std::int64_t count, std::int64_t neurons, double radius, std::uint64_t seed);

  std::int64_t count, neurons;
  double radius;
  std::vector<float> gain, bias;  // [count, neurons]

  // Weights [count, neurons] with which a group's spikes sum up to `function` of its number.
  std::vector<float> decoders(const std::function<double(double)>& function) const;
};

}  // namespace spiking

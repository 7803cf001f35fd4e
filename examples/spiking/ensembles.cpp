#include "examples/spiking/ensembles.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace spiking {
namespace {

constexpr std::size_t kPoints = 100;  // at which decoders are fitted
constexpr double kNoise = 0.1;        // of the rates, as a part of the largest, for which decoders are fitted

// Spikes a second at a constant current.
double rate(double current) { return current > 1 ? 1 / (kTauRef + kTauRc * std::log1p(1 / (current - 1))) : 0; }

// Solves G x = y for the symmetric positive definite G[n, n], by Cholesky's factors.
std::vector<double> solve(std::vector<double> g, std::vector<double> y) {
  const std::size_t n = y.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k)
      for (std::size_t i = j; i < n; ++i) g[i * n + j] -= g[i * n + k] * g[j * n + k];
    if (g[j * n + j] <= 0) throw std::runtime_error("decoders: the matrix of activities is singular");
    const double root = std::sqrt(g[j * n + j]);
    for (std::size_t i = j; i < n; ++i) g[i * n + j] /= root;
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) y[i] -= g[i * n + k] * y[k];
    y[i] /= g[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) y[i] -= g[k * n + i] * y[k];
    y[i] /= g[i * n + i];
  }
  return y;
}

}  // namespace

Ensembles::Ensembles(std::int64_t groups, std::int64_t cells, double largest, std::uint64_t seed)
    : count(groups), neurons(cells), radius(largest) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  for (std::int64_t i = 0; i < count * neurons; ++i) {
    const double most = uniform(200, 400), intercept = uniform(-1, 0.9), side = random() & 1 ? 1 : -1;
    const double at_most = 1 / (1 - std::exp((kTauRef - 1 / most) / kTauRc));  // current at which it fires so
    const double g = (at_most - 1) / (1 - intercept);
    gain.push_back(static_cast<float>(side * g / radius));
    bias.push_back(static_cast<float>(1 - g * intercept));
  }
}

std::vector<float> Ensembles::decoders(const std::function<double(double)>& function) const {
  const auto n = static_cast<std::size_t>(neurons);
  std::vector<float> all;
  std::vector<double> rates(kPoints * n);
  for (std::size_t e = 0; e < static_cast<std::size_t>(count); ++e) {
    double most = 0;
    std::vector<double> gram(n * n), product(n);
    for (std::size_t p = 0; p < kPoints; ++p) {
      const double x = radius * (2 * static_cast<double>(p) / (kPoints - 1) - 1), y = function(x);
      for (std::size_t i = 0; i < n; ++i) {
        const double a = rate(static_cast<double>(gain[e * n + i]) * x + static_cast<double>(bias[e * n + i]));
        rates[p * n + i] = a;
        product[i] += a * y;
        most = std::max(most, a);
      }
    }
    for (std::size_t p = 0; p < kPoints; ++p)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k <= i; ++k) gram[i * n + k] += rates[p * n + i] * rates[p * n + k];
    for (std::size_t i = 0; i < n; ++i) gram[i * n + i] += kPoints * kNoise * kNoise * most * most;
    for (const double d : solve(std::move(gram), std::move(product))) all.push_back(static_cast<float>(d));
  }
  return all;
}

}  // namespace spiking

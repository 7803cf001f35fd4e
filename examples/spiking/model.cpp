#include "examples/spiking/model.h"

#include <cmath>
#include <numbers>

namespace spiking {
namespace {

using nn::Tensor;
using oclc::Expr;

constexpr double kTau = 5e-3, kRateTau = 10e-3;  // of synapses, seconds

// Rows of the products: of each frequency f the real parts, the imaginary parts, and both crossed. A[row] . a is the factor of
// a, B[row] . b that of b, and c = C . (products).
struct Spectrum {
  std::vector<float> a, b, c;
};

Spectrum spectrum() {
  Spectrum s{std::vector<float>(kRows * kDims), std::vector<float>(kRows * kDims), std::vector<float>(kDims * kRows)};
  for (std::int64_t f = 0; f <= kDims / 2; ++f) {
    const double weight = (f == 0 || f == kDims / 2 ? 1.0 : 2.0) / kDims;  // the other half of the spectrum is conjugate
    for (std::int64_t i = 0; i < kDims; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(f * i % kDims) / kDims;
      const double re = std::cos(angle), im = -std::sin(angle);
      const double of_a[] = {re, im, re, im}, of_b[] = {re, im, im, re};
      // c = weight (re (rr - ii) + im (ri + ir)), im is minus the sine
      const double of_c[] = {re, -re, im, im};
      for (std::int64_t k = 0; k < 4; ++k) {
        s.a[static_cast<std::size_t>((4 * f + k) * kDims + i)] = static_cast<float>(of_a[k]);
        s.b[static_cast<std::size_t>((4 * f + k) * kDims + i)] = static_cast<float>(of_b[k]);
        s.c[static_cast<std::size_t>(i * kRows + 4 * f + k)] = static_cast<float>(weight * of_c[k]);
      }
    }
  }
  return s;
}

// a b = ((a + b)^2 - (a - b)^2) / 4, each square by a group of neurons.
Tensor products(StepNetwork& s, const Tensor& a, const Tensor& b, std::int64_t neurons) {
  const Ensembles groups(2 * kRows, neurons, kRadius, 1);
  const Tensor x = nn::concat({a + b, a - b}, 0) * (1 / std::numbers::sqrt2);  // [2 rows, 1]
  const std::vector<std::int64_t> shape = {groups.count, groups.neurons};
  const Tensor spikes = s.spikes("product", x * s.constant(groups.gain, shape) + s.constant(groups.bias, shape));
  const Tensor decoded = (spikes * s.constant(groups.decoders([](double v) { return v * v; }), shape)).sum({1}, true);
  return (decoded.slice(0, Expr(0), Expr(kRows)) - decoded.slice(0, Expr(kRows), Expr(kRows))) * 0.5;
}

void convolve(StepNetwork& s, std::int64_t neurons) {
  const Tensor a = s.net.input("a", oclc::DType::f32, {Expr(1), Expr(kDims)}),
               b = s.net.input("b", oclc::DType::f32, {Expr(1), Expr(kDims)});
  const Spectrum spectra = spectrum();
  const auto column = [&](const std::vector<float>& matrix, const Tensor& x) {
    return matmul(s.constant(matrix, {kRows, kDims}), x.reshape({Expr(kDims), Expr(1)}));
  };
  const Tensor product = s.low_pass("product.synapse", products(s, column(spectra.a, a), column(spectra.b, b), neurons), kTau);
  s.net.output("c", matmul(s.constant(spectra.c, {kDims, kRows}), product).reshape({Expr(1), Expr(kDims)}));
}

// A group sees x; decoders that begin as zeros learn its square by the error.
Tensor learn(StepNetwork& s) {
  const Tensor x = s.net.input("x", oclc::DType::f32, {Expr(1), Expr(1)});
  const Ensembles group(1, kLearners, 1.0, 2);
  const Tensor spikes = s.spikes("pre", x * s.constant(group.gain, {1, kLearners}) + s.constant(group.bias, {1, kLearners}));
  const Tensor rates = s.low_pass("pre.rates", spikes, kRateTau);
  const Tensor d = s.state("decoders", {1, kLearners});
  const Tensor learnt = (d * rates).sum({1}, true), target = x * x;
  s.next("decoders", d + s.net.call("spiking.PES", {learnt - target, rates}, {{"rate", 4e-3}}));
  s.net.output("raster", spikes);
  s.net.output("learnt", learnt);
  s.net.output("target", target);
  return rates;
}

// Three groups of several sizes under the voltage rule.
void follow(StepNetwork& s, const Tensor& rates) {
  const std::int64_t sizes[][2] = {{200, 100}, {50, 100}, {30, 30}};
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto [cells, inputs] = sizes[i];
    const std::string name = "w" + std::to_string(i);
    const Tensor in = rates.slice(1, Expr(0), Expr(inputs)), w = s.state(name, {cells, inputs});
    Tensor voltages;
    s.spikes(name + ".post", matmul(in, w, false, true) * (0.0125 / static_cast<double>(inputs)) + 1.5, &voltages);
    const Tensor trace = s.low_pass(name + ".trace", in, 20e-3), low = s.low_pass(name + ".low", voltages, 10e-3);
    s.next(name, s.net.call("spiking.Voltage", {w, in, trace, voltages, low}));
  }
}

}  // namespace

StepNetwork::StepNetwork(const std::string& rules) : net("spiking", nn::initial_parameters()) {
  net.add_ops(oclc::load_ops(rules));
}

Tensor StepNetwork::state(const std::string& name, std::vector<std::int64_t> shape) {
  return net.input(name, oclc::DType::f32, {shape.begin(), shape.end()});
}

void StepNetwork::next(const std::string& name, const Tensor& value) {
  net.output(name + ".next", value);
  carries.push_back({name + ".next", name, false});
}

Tensor StepNetwork::low_pass(const std::string& name, const Tensor& u, double tau) {
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < u.rank(); ++i) shape.push_back(u.size(static_cast<std::int64_t>(i)));
  const Tensor before = state(name, shape), now = before + (u - before) * -std::expm1(-kStep / tau);
  next(name, now);
  return now;
}

Tensor StepNetwork::constant(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  oclc::HostTensor t(oclc::DType::f32, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
  return net.constant(std::move(t));
}

Tensor StepNetwork::spikes(const std::string& name, const Tensor& currents, Tensor* voltages) {
  const std::vector<std::int64_t> shape = {currents.size(0), currents.size(1)};
  const Tensor v = state(name + ".v", shape), r = state(name + ".r", shape);
  const std::vector<Tensor> out = net.call_all("spiking.LIF", {currents, v, r});
  next(name + ".v", out[1]);
  next(name + ".r", out[2]);
  if (voltages) *voltages = out[1];
  return out[0];
}

std::shared_ptr<oclc::Module> spiking_module(const std::string& rules, std::int64_t neurons) {
  StepNetwork s(rules);
  convolve(s, neurons);
  follow(s, learn(s));
  auto module = s.net.finish();
  carry_outputs(*module, s.carries);
  return module;
}

std::vector<float> circular_convolution(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(a.size());
  for (std::size_t k = 0; k < c.size(); ++k) {
    double sum = 0;
    for (std::size_t i = 0; i < c.size(); ++i)
      sum += static_cast<double>(a[i]) * static_cast<double>(b[(k + c.size() - i) % c.size()]);
    c[k] = static_cast<float>(sum);
  }
  return c;
}

}  // namespace spiking

// Layers of nn.h beside formulas written out, and both forms of recurrent ones beside each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "frontends/cpp/nn.h"
#include "tests/ops/run_op.h"

namespace layers_test {

using namespace oclc;
using nn::Network;
using nn::Tensor;

using Build = std::function<Tensor(Network&, const Tensor&)>;

// Initial parameters, with biases that are not zero.
HostTensor parameter(const std::string& name, const Ints& shape) {
  HostTensor t = nn::initial_parameters(3)(name, shape);
  for (std::int64_t i = 0; i < t.elements() && name.find("bias") != std::string::npos; ++i)
    t.set(i, 0.1 * std::cos(static_cast<double>(i) + (name.find("hh") == std::string::npos ? 0 : 5)));
  return t;
}

// The network on x, with these parameters, or with them as inputs as training has them.
HostTensor result_of(const HostTensor& x, const Build& build, nn::Use use = nn::Use::inference) {
  Network net("test", parameter, use);
  const Tensor input = net.input("x", x.dtype(), x.type().shape);
  net.output("y", build(net, input));
  const auto module = net.finish();
  std::vector<HostTensor> inputs{x};
  for (const StateVariable& state : module->states) inputs.push_back(state.initial);
  return evaluate(*module->entries[0], inputs).at(0);
}

void check_values(const HostTensor& found, const std::vector<double>& wanted) {
  REQUIRE(found.elements() == static_cast<std::int64_t>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK(found.at(static_cast<std::int64_t>(i)) == doctest::Approx(wanted[i]).epsilon(1e-5));
  }
}

HostTensor some(const Ints& shape) {
  HostTensor t(DType::f32, shape);
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, std::sin(static_cast<double>(i) * 1.3 + 0.4));
  return t;
}

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

// One direction of a recurrent layer of PyTorch's over x[T][I], written out.
std::vector<std::vector<double>> reference(const std::string& kind, const HostTensor& x, std::int64_t hidden,
                                           const std::string& suffix, bool backwards) {
  const std::int64_t steps = x.shape()[1], inputs = x.shape()[2], gates = kind == "lstm" ? 4 : 3;
  const HostTensor w = parameter("rnn.weight_ih" + suffix, {gates * hidden, inputs}),
                   r = parameter("rnn.weight_hh" + suffix, {gates * hidden, hidden}),
                   w_bias = parameter("rnn.bias_ih" + suffix, {gates * hidden}),
                   r_bias = parameter("rnn.bias_hh" + suffix, {gates * hidden});
  std::vector<double> h(static_cast<std::size_t>(hidden), 0), c = h;
  std::vector<std::vector<double>> all(static_cast<std::size_t>(steps));
  for (std::int64_t k = 0; k < steps; ++k) {
    const std::int64_t t = backwards ? steps - 1 - k : k;
    std::vector<double> in(static_cast<std::size_t>(gates * hidden)), re = in;
    for (std::int64_t g = 0; g < gates * hidden; ++g) {
      const auto at = static_cast<std::size_t>(g);
      in[at] = w_bias.at(g), re[at] = r_bias.at(g);
      for (std::int64_t i = 0; i < inputs; ++i) in[at] += w.at(g * inputs + i) * x.at(t * inputs + i);
      for (std::int64_t i = 0; i < hidden; ++i) re[at] += r.at(g * hidden + i) * h[static_cast<std::size_t>(i)];
    }
    const auto n = static_cast<std::size_t>(hidden);
    for (std::size_t j = 0; j < n; ++j) {
      if (kind == "lstm") {
        const auto sum = [&](std::size_t g) { return in[g * n + j] + re[g * n + j]; };
        c[j] = sigmoid(sum(1)) * c[j] + sigmoid(sum(0)) * std::tanh(sum(2));
        h[j] = sigmoid(sum(3)) * std::tanh(c[j]);
      } else {
        const double reset = sigmoid(in[j] + re[j]), update = sigmoid(in[n + j] + re[n + j]);
        const double fresh = std::tanh(in[2 * n + j] + reset * re[2 * n + j]);
        h[j] = (1 - update) * fresh + update * h[j];
      }
    }
    all[static_cast<std::size_t>(t)] = h;
  }
  return all;
}

TEST_CASE("LSTM and GRU of one direction and of two are PyTorch's formulas, in a loop and step by step") {
  const HostTensor x = some({1, 5, 3});
  for (const std::string kind : {"lstm", "gru"}) {
    for (const bool both : {false, true}) {
      CAPTURE(kind);
      CAPTURE(both);
      const Build build = [&](Network& net, const Tensor& in) {
        const nn::Recurrent options{.hidden = 2, .layers = 1, .bidirectional = both};
        return (kind == "lstm" ? lstm(net, "rnn", in, options) : gru(net, "rnn", in, options)).output;
      };
      const auto forward = reference(kind, x, 2, "_l0", false), backward = reference(kind, x, 2, "_l0_reverse", true);
      std::vector<double> wanted;
      for (std::size_t t = 0; t < 5; ++t) {
        wanted.insert(wanted.end(), forward[t].begin(), forward[t].end());
        if (both) wanted.insert(wanted.end(), backward[t].begin(), backward[t].end());
      }
      check_values(result_of(x, build), wanted);
      check_values(result_of(x, build, nn::Use::training), wanted);
    }
  }
}

TEST_CASE("the last result of an LSTM of two layers is the state of the second") {
  const HostTensor x = some({2, 4, 3});
  const HostTensor difference = result_of(x, [](Network& net, const Tensor& in) {
    const nn::Sequence s = lstm(net, "rnn", in, {.hidden = 3, .layers = 2});
    REQUIRE(s.states.size() == 4);
    return s.output.slice(1, 3, 1).reshape({2, 3}) - s.states[2];
  });
  check_values(difference, {0, 0, 0, 0, 0, 0});
}

TEST_CASE("RMS, group and instance norm") {
  const HostTensor x = some({2, 4, 3});
  const HostTensor rms = result_of(x, [](Network& net, const Tensor& in) { return rms_norm(net, "n", in, 0.25); });
  const HostTensor group = result_of(x, [](Network& net, const Tensor& in) { return group_norm(net, "n", in, 2, 0.25); });
  const HostTensor instance = result_of(x, [](Network&, const Tensor& in) { return nn::instance_norm(in, 0.25); });
  // Elements from `first` on, so many of them: mean, and mean of squares.
  const auto moments = [&](std::int64_t first, std::int64_t count) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += x.at(first + i), squares += x.at(first + i) * x.at(first + i);
    return std::pair(sum / static_cast<double>(count), squares / static_cast<double>(count));
  };
  const HostTensor bias = parameter("n.bias", {4});
  std::vector<double> wanted_rms, wanted_group, wanted_instance;
  for (std::int64_t i = 0; i < 24; ++i) {
    wanted_rms.push_back(x.at(i) / std::sqrt(moments(i / 3 * 3, 3).second + 0.25));
    const auto [m6, s6] = moments(i / 6 * 6, 6);
    wanted_group.push_back((x.at(i) - m6) / std::sqrt(s6 - m6 * m6 + 0.25) + bias.at(i / 3 % 4));
    const auto [m3, s3] = moments(i / 3 * 3, 3);
    wanted_instance.push_back((x.at(i) - m3) / std::sqrt(s3 - m3 * m3 + 0.25));
  }
  check_values(rms, wanted_rms);
  check_values(group, wanted_group);
  check_values(instance, wanted_instance);
}

TEST_CASE("a transposed convolution spreads each element by the kernel") {
  const HostTensor x = floats({1, 1, 2}, {1, 10});
  const HostTensor w = parameter("up.weight", {1, 1, 3});
  const double bias = parameter("up.bias", {1}).at(0);
  const HostTensor y = result_of(x, [](Network& net, const Tensor& in) {
    return conv_transpose(net, "up", in, 1, {.kernel = {3}, .stride = {2}, .padding = {1}, .output_padding = {1}});
  });
  // Whole: w0, w1, w2 + 10 w0, 10 w1, 10 w2 and one more; one is cut off in front and behind.
  check_values(y, {w.at(1) + bias, w.at(2) + 10 * w.at(0) + bias, 10 * w.at(1) + bias, 10 * w.at(2) + bias});
}

TEST_CASE("upsampling, padding, reductions, comparisons and selection") {
  const HostTensor x = floats({1, 1, 3}, {0, 4, -2});
  check_values(result_of(x, [](Network&, const Tensor& in) { return nn::upsample_nearest(in); }), {0, 0, 4, 4, -2, -2});
  check_values(result_of(x, [](Network&, const Tensor& in) { return nn::upsample_linear(in); }), {0, 1, 3, 2.5, -0.5, -2});
  check_values(result_of(x,
                         [](Network&, const Tensor& in) {
                           return nn::pad(in, {0, 0, 1}, {0, 0, 2}, 7);
                         }),
               {7, 0, 4, -2, 7, 7});
  check_values(result_of(x, [](Network&, const Tensor& in) { return in.max({2}); }), {4});
  check_values(result_of(x, [](Network&, const Tensor& in) { return in.min({2}); }), {-2});
  const auto chosen = [&](Tensor (*compare)(const Tensor&, const Tensor&)) {
    return result_of(x, [&](Network& net, const Tensor& in) {
      const Tensor four = net.scalar(DType::f32, 4);
      return nn::where(compare(in, four), in + 100, in);
    });
  };
  check_values(chosen(nn::less), {100, 4, 98});
  check_values(chosen(nn::less_equal), {100, 104, 98});
  check_values(chosen(nn::greater), {0, 4, -2});
  check_values(chosen(nn::greater_equal), {0, 104, -2});
  check_values(chosen(nn::equal), {0, 104, -2});
}

TEST_CASE("rotary positions turn pairs of elements, and the first position may be given") {
  const HostTensor x = some({1, 2, 4});
  const HostTensor y = result_of(x, [](Network&, const Tensor& in) { return nn::rotary(in, 100, 3); });
  std::vector<double> wanted(8);
  for (std::int64_t t = 0; t < 2; ++t) {
    for (std::int64_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(t + 3) * std::pow(100.0, -static_cast<double>(i) / 2);
      const double a = x.at(t * 4 + i), b = x.at(t * 4 + i + 2);
      wanted[static_cast<std::size_t>(t * 4 + i)] = a * std::cos(angle) - b * std::sin(angle);
      wanted[static_cast<std::size_t>(t * 4 + i + 2)] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
  check_values(y, wanted);
}

TEST_CASE("layers that do not fit are refused by name") {
  const auto refusal = [](const Build& build) {
    try {
      result_of(some({1, 4, 3}), build);
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(refusal([](Network& net, const Tensor& x) { return group_norm(net, "g", x, 3); }) ==
        "node 'g': wanted a number of groups that divides 4 channels, found 3");
  CHECK(refusal([](Network& net, const Tensor& x) { return lstm(net, "l", x, {.hidden = 0}).output; }) ==
        "node 'l' (lstm): wanted a tensor [N, T, I] and a hidden size and a number of layers of at least 1, found f32[1, 4, "
        "3], 0 "
        "and 1");
  CHECK(refusal([](Network&, const Tensor& x) { return nn::rotary(x); }) ==
        "(rotary): wanted a tensor [.., T, E] with an even E, found f32[1, 4, 3]");
  CHECK(refusal([](Network&, const Tensor& x) { return nn::upsample_nearest(x, {0}); }) ==
        "wanted scale values of at least 1, found [0]");
  CHECK(refusal([](Network&, const Tensor& x) { return nn::pad(x, {1}, {1}); }) ==
        "(pad): wanted 3 sizes before and after, found [1] and [1]");
  CHECK(refusal([](Network& net, const Tensor& x) { return conv_transpose(net, "c", x, 3, {.kernel = {2}, .groups = 2}); }) ==
        "node 'c': wanted a number of groups that divides 3, found 2");
}

}  // namespace layers_test

#include "frontends/cpp/typed/typed.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace oclc::typed {
namespace {

Options options(std::vector<std::string> disabled = {}) {
  Options options;
  options.hyper = {.learning_rate = 0.05f, .momentum = 0.8f, .l2 = 1e-3f};
  const char* selected = std::getenv("OCLC_TEST_DEVICE");
  options.device = selected ? selected : "cpu";
  options.disabled = std::move(disabled);
  return options;
}

std::vector<float> random_floats(std::size_t count, unsigned seed, float low, float high) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(count);
  for (float& v : values) v = uniform(generator);
  return values;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

// The classic network in double precision, one sample a step: tanh inside, a logit at the end.
struct Reference {
  std::vector<double> w1, b1, w2, b2, vw1, vb1, vw2, vb2;
  int inputs, hidden;

  template <class Net>
  explicit Reference(const Net& net) : inputs(Net::kInputs) {
    const auto doubles = [](const std::vector<float>& v) { return std::vector<double>(v.begin(), v.end()); };
    w1 = doubles(net.template weight<0>());
    b1 = doubles(net.template bias<0>());
    w2 = doubles(net.template weight<2>());
    b2 = doubles(net.template bias<2>());
    hidden = static_cast<int>(b1.size());
    vw1.resize(w1.size());
    vb1.resize(b1.size());
    vw2.resize(w2.size());
    vb2.resize(b2.size());
  }

  static void move(std::vector<double>& w, std::vector<double>& v, const std::vector<double>& g, const HyperParameters& h,
                   double l2) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      v[i] = static_cast<double>(h.momentum) * v[i] + g[i] + l2 * w[i];
      w[i] -= static_cast<double>(h.learning_rate) * v[i];
    }
  }

  double step(const float* x, double y, const HyperParameters& first, const HyperParameters& second) {
    const auto n = static_cast<std::size_t>(hidden), m = static_cast<std::size_t>(inputs);
    std::vector<double> h(n), gw1(w1.size()), gb1(n), gw2(n);
    double z = b2[0];
    for (std::size_t j = 0; j < n; ++j) {
      double sum = b1[j];
      for (std::size_t i = 0; i < m; ++i) sum += static_cast<double>(x[i]) * w1[i * n + j];
      h[j] = std::tanh(sum);
      z += h[j] * w2[j];
    }
    const double dz = 1 / (1 + std::exp(-z)) - y, loss = std::log1p(std::exp(z)) - y * z;
    for (std::size_t j = 0; j < n; ++j) {
      gw2[j] = dz * h[j];
      gb1[j] = dz * w2[j] * (1 - h[j] * h[j]);
      for (std::size_t i = 0; i < m; ++i) gw1[i * n + j] = gb1[j] * static_cast<double>(x[i]);
    }
    move(w1, vw1, gw1, first, static_cast<double>(first.l2));
    move(b1, vb1, gb1, first, 0);
    move(w2, vw2, gw2, second, static_cast<double>(second.l2));
    move(b2, vb2, {dz}, second, 0);
    return loss;
  }
};

using Small = Sequential<Linear<3, 10>, Tanh, Linear<10, 1>, Logit>;

TEST_CASE("shapes are known to the compiler") {
  using Net = Sequential<Linear<2, 40>, Tanh, Linear<40, 10>, Relu, Linear<10, 3>, Softmax>;
  static_assert(Net::kInputs == 2 && Net::kOutputs == 3);
  static_assert(std::is_same_v<Net::Output, std::array<float, 3>>);
}

TEST_CASE("steps move the parameters as the formula says, each layer by its own hyper-parameters") {
  Small net(options());
  const HyperParameters first{.learning_rate = 0.1f, .momentum = 0.5f, .l2 = 0}, second = options().hyper;
  net.hyper<0>(first);
  Reference reference(net);
  const auto xs = random_floats(3 * 40, 1, -1, 1);
  for (std::size_t i = 0; i < 40; ++i) {
    const float y = xs[3 * i] * xs[3 * i + 1] > 0 ? 1 : 0;
    const double wanted = reference.step(&xs[3 * i], static_cast<double>(y), first, second);
    CHECK(net.train_step({xs[3 * i], xs[3 * i + 1], xs[3 * i + 2]}, {y}) == doctest::Approx(wanted).epsilon(1e-4));
  }
  const auto weight = net.weight<0>(), bias = net.bias<2>();
  for (std::size_t i = 0; i < weight.size(); ++i) CHECK(weight[i] == doctest::Approx(reference.w1[i]).epsilon(1e-4));
  CHECK(bias[0] == doctest::Approx(reference.b2[0]).epsilon(1e-4));
}

TEST_CASE("many steps in one launch are the same steps") {
  const auto xs = random_floats(3 * 200, 2, -1, 1);
  std::vector<float> ys;
  for (std::size_t i = 0; i < 200; ++i) ys.push_back(xs[3 * i] > xs[3 * i + 2] ? 1.0f : 0.0f);
  Small one(options()), many(options()), launches(options({"loop_kernel"})), unfused(options({"fuse"}));
  std::vector<float> losses;
  for (std::size_t i = 0; i < 200; ++i)
    losses.push_back(one.train_step(std::span(xs).subspan(3 * i, 3), std::span(ys).subspan(i, 1)));
  const auto at_once = many.train(xs, ys);
  CHECK(largest_difference(losses, at_once) < 1e-5);
  CHECK(largest_difference(launches.train(xs, ys), at_once) < 1e-5);
  CHECK(largest_difference(unfused.train(xs, ys), at_once) < 1e-5);
  CHECK(largest_difference(one.weight<0>(), many.weight<0>()) < 1e-5);
  CHECK(largest_difference(launches.weight<2>(), many.weight<2>()) < 1e-5);
}

TEST_CASE("training in two calls is training in one") {
  const auto xs = random_floats(3 * 100, 3, -1, 1), ys = random_floats(100, 4, 0, 1);
  Small one(options()), two(options());
  one.train(xs, ys);
  two.train(std::span(xs).first(3 * 37), std::span(ys).first(37));
  two.train(std::span(xs).subspan(3 * 37), std::span(ys).subspan(37));
  CHECK(largest_difference(one.weight<0>(), two.weight<0>()) == 0);
  CHECK(largest_difference(one.bias<2>(), two.bias<2>()) == 0);
}

TEST_CASE("an inference view sees what the training view learns") {
  Small net(options());
  const Small::Inference inference = net.inference();
  Small::Training training = net.training();
  const float before = inference.predict({1, 1, 1})[0];
  for (int i = 0; i < 50; ++i) training.train_step(std::array{1.0f, 1.0f, 1.0f}, std::array{1.0f});
  const float after = inference.predict({1, 1, 1})[0];
  CHECK(after > before);
  CHECK(after > 0.9f);
  CHECK(net.predict({1, 1, 1})[0] == after);
  net.engine().reset();
  CHECK(net.predict({1, 1, 1})[0] == before);
}

TEST_CASE("batches, softmax and squared errors") {
  Options batched = options();
  batched.batch = 7;
  const auto xs = random_floats(7 * 5 * 4, 5, -1, 1);
  std::vector<float> labels(7 * 5 * 3, 0.0f);
  for (std::size_t i = 0; i < 35; ++i) labels[i * 3 + (xs[i * 4] > 0 ? 0 : xs[i * 4 + 1] > 0 ? 1 : 2)] = 1;
  Sequential<Linear<4, 16>, Relu, Linear<16, 3>, Softmax> classes(batched);
  const auto first = classes.train(xs, labels);
  CHECK(first.size() == 5);
  float last = 0;
  for (int i = 0; i < 100; ++i) last = classes.train(xs, labels).back();
  CHECK(last < first.front() / 4);
  const auto p = classes.predict(std::span(xs).first(8));
  CHECK(p[0] + p[1] + p[2] == doctest::Approx(1));

  Sequential<Linear<4, 3>> linear(batched);
  const auto weight = linear.weight<0>();
  const auto y = linear.predict({1, 0, 0, 0});
  CHECK(largest_difference(y, std::span(weight).first(3)) < 1e-6);
  const float loss = linear.train_step(std::span(xs).first(28), std::span(labels).first(21));
  double wanted = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    for (std::size_t o = 0; o < 3; ++o) {
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += static_cast<double>(xs[i * 4 + k]) * static_cast<double>(weight[k * 3 + o]);
      wanted += (sum - static_cast<double>(labels[i * 3 + o])) * (sum - static_cast<double>(labels[i * 3 + o])) / 14;
    }
  }
  CHECK(loss == doctest::Approx(wanted).epsilon(1e-4));
}

TEST_CASE("parameters are read and written by layer") {
  Sequential<Linear<2, 2>, Relu, Linear<2, 1>> net(options());
  net.set_weight<0>(std::array{1.0f, 2.0f, 3.0f, 4.0f});
  net.set_bias<0>(std::array{0.5f, -100.0f});
  net.set_weight<2>(std::array{2.0f, 7.0f});
  net.set_bias<2>(std::array{1.0f});
  CHECK(net.predict({1, 2})[0] == doctest::Approx((1 * 1 + 2 * 3 + 0.5) * 2 + 1));
  CHECK(net.weight<0>() == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("data of another size is refused") {
  Small net(options());
  const std::vector<float> three(3), four(4), one(1), two(2);
  CHECK_THROWS_WITH_AS(net.train_step(four, one), "typed network: wanted 3 numbers of inputs, found 4", std::invalid_argument);
  CHECK_THROWS_WITH_AS(net.train(three, two), "typed network: wanted 1 numbers of wanted outputs, found 2",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(net.predict(std::span<const float>(four)),
                       "typed network: wanted a multiple of 3 numbers of inputs, found 4", std::invalid_argument);
}

}  // namespace
}  // namespace oclc::typed

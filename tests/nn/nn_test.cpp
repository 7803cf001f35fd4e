#include "frontends/cpp/nn.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "examples/resnet18/resnet18.h"
#include "tests/ops/run_op.h"

using namespace oclc;
using nn::Network;
using nn::Tensor;

namespace {

using Dictionary = std::map<std::string, HostTensor, std::less<>>;

// Builds a network of one input (or several) and evaluates it.
template <class Build>
HostTensor run_network(const std::vector<HostTensor>& inputs, Dictionary parameters, Build&& build) {
  Network net("test", nn::state_dictionary(std::move(parameters)));
  std::vector<Tensor> x;
  for (const HostTensor& input : inputs)
    x.push_back(net.input("x" + std::to_string(x.size()), input.dtype(), input.type().shape));
  net.output("y", build(net, x));
  const auto module = net.finish();
  return evaluate(*module->entries[0], inputs).at(0);
}

template <class F>
HostTensor activate(const HostTensor& x, F&& f) {
  return run_network({x}, {}, [&](Network&, const std::vector<Tensor>& in) { return f(in[0]); });
}

void check_close(const HostTensor& found, const std::vector<double>& wanted) {
  REQUIRE(found.elements() == static_cast<std::int64_t>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK(found.at(static_cast<std::int64_t>(i)) == doctest::Approx(wanted[i]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("linear and embedding") {
  const Dictionary p{{"fc.weight", floats({2, 3}, {1, 0, 0, 0, 1, 1})},
                     {"fc.bias", floats({2}, {10, 20})},
                     {"table.weight", floats({2, 2}, {1, 2, 3, 4})}};
  const HostTensor y = run_network({floats({1, 2, 3}, {1, 2, 3, 4, 5, 6})}, p,
                                   [](Network& net, const auto& x) { return linear(net, "fc", x[0], 2); });
  CHECK(y.shape() == Ints{1, 2, 2});
  CHECK(values(y) == std::vector<double>{11, 25, 14, 31});
  CHECK(values(run_network({ints({3}, {1, 0, 1})}, p, [](Network& net, const auto& x) {
          return embedding(net, "table", x[0], 2, 2);
        })) == std::vector<double>{3, 4, 1, 2, 3, 4});
}

TEST_CASE("convolution and batch norm") {
  const Dictionary p{{"conv.weight", floats({1, 1, 2, 2}, {1, 1, 1, 1})},
                     {"conv.bias", floats({1}, {1})},
                     {"bn.weight", floats({2}, {2, 1})},
                     {"bn.bias", floats({2}, {1, -1})},
                     {"bn.running_mean", floats({2}, {3, 0})},
                     {"bn.running_var", floats({2}, {4, 1})}};
  const HostTensor image = counting({1, 1, 3, 3});
  CHECK(values(run_network({image}, p, [](Network& net, const auto& x) {
          return conv(net, "conv", x[0], 1, {.kernel = {2, 2}, .stride = {2, 2}, .padding = {1, 1}});
        })) == std::vector<double>{2, 6, 12, 29});
  check_close(run_network({counting({1, 2, 2})}, p, [](Network& net, const auto& x) { return batch_norm(net, "bn", x[0], 0); }),
              {-1, 0, 2, 3});
}

TEST_CASE("layer norm over the last axis") {
  const Dictionary p{{"ln.weight", floats({2}, {1, 2})}, {"ln.bias", floats({2}, {0, 1})}};
  check_close(run_network({floats({2, 2}, {1, 3, 5, 1})}, p,
                          [](Network& net, const auto& x) { return layer_norm(net, "ln", x[0], 0); }),
              {-1, 3, 1, -1});
}

TEST_CASE("activations at known points") {
  const HostTensor x = floats({5}, {-4, -1, 0, 1, 7});
  const auto wanted = [](double (*f)(double)) {
    std::vector<double> list;
    for (const double v : {-4.0, -1.0, 0.0, 1.0, 7.0}) list.push_back(f(v));
    return list;
  };
  check_close(activate(x, nn::relu), {0, 0, 0, 1, 7});
  check_close(activate(x, nn::relu6), {0, 0, 0, 1, 6});
  check_close(activate(x, [](const Tensor& t) { return nn::leaky_relu(t, 0.5); }), {-2, -0.5, 0, 1, 7});
  check_close(activate(x, [](const Tensor& t) { return nn::leaky_relu(t, 2); }), {-8, -2, 0, 1, 7});
  check_close(activate(x, nn::silu), wanted([](double v) { return v / (1 + std::exp(-v)); }));
  check_close(activate(x, nn::gelu), wanted([](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); }));
  check_close(activate(x, nn::gelu_tanh), wanted([](double v) {
                return v / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (v + 0.044715 * v * v * v)));
              }));
  check_close(activate(x, nn::hard_sigmoid), {0, 1.0 / 3, 0.5, 2.0 / 3, 1});
  check_close(activate(x, nn::hard_swish), {0, -1.0 / 3, 0, 2.0 / 3, 7});
  check_close(activate(x, nn::softplus), wanted([](double v) { return std::log1p(std::exp(v)); }));
  check_close(activate(x, nn::tanh), wanted([](double v) { return std::tanh(v); }));
  check_close(activate(x, nn::sigmoid), wanted([](double v) { return 1 / (1 + std::exp(-v)); }));
}

TEST_CASE("pooling and flattening") {
  const HostTensor image = counting({1, 2, 2, 2});
  CHECK(values(activate(image, [](const Tensor& t) {
          return nn::max_pool(t, {.kernel = {2, 2}});
        })) == std::vector<double>{4, 8});
  CHECK(values(activate(image, [](const Tensor& t) {
          return nn::avg_pool(t, {.kernel = {2, 1}, .stride = {2, 2}, .padding = {1, 0}});
        })) == std::vector<double>{0.5, 1.5, 2.5, 3.5});
  CHECK(values(activate(image, nn::global_avg_pool)) == std::vector<double>{2.5, 6.5});
  CHECK(activate(image, [](const Tensor& t) { return nn::flatten(t); }).shape() == Ints{1, 8});
  CHECK(activate(image, [](const Tensor& t) { return nn::flatten(t, -2); }).shape() == Ints{1, 2, 4});
}

namespace {

HostTensor noise(Ints shape, int seed) {
  HostTensor t(DType::f32, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, std::sin(static_cast<double>(i * 7 + seed)));
  return t;
}

// Attention written out over plain loops: queries [T, E], keys and values [S, E].
std::vector<double> plain_attention(const HostTensor& q, const HostTensor& kv, const Dictionary& p, std::int64_t heads,
                                    bool causal) {
  const std::int64_t t = q.shape()[1], s = kv.shape()[1], e = q.shape()[2], d = e / heads;
  const auto project = [&](const HostTensor& x, std::int64_t row, std::int64_t feature) {
    double sum = p.at("attn.in_proj_bias").at(feature);
    for (std::int64_t i = 0; i < e; ++i) sum += x.at(row * e + i) * p.at("attn.in_proj_weight").at(feature * e + i);
    return sum;
  };
  std::vector<double> mixed(static_cast<std::size_t>(t * e));
  for (std::int64_t i = 0; i < t; ++i) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::vector<double> weights;
      double total = 0;
      for (std::int64_t j = 0; j < s; ++j) {
        double score = 0;
        for (std::int64_t f = 0; f < d; ++f) score += project(q, i, h * d + f) * project(kv, j, e + h * d + f);
        weights.push_back(causal && j > i + s - t ? 0 : std::exp(score / std::sqrt(static_cast<double>(d))));
        total += weights.back();
      }
      for (std::int64_t f = 0; f < d; ++f) {
        for (std::int64_t j = 0; j < s; ++j) {
          mixed[static_cast<std::size_t>(i * e + h * d + f)] +=
              weights[static_cast<std::size_t>(j)] / total * project(kv, j, 2 * e + h * d + f);
        }
      }
    }
  }
  std::vector<double> y;
  for (std::int64_t i = 0; i < t; ++i) {
    for (std::int64_t o = 0; o < e; ++o) {
      double sum = p.at("attn.out_proj.bias").at(o);
      for (std::int64_t k = 0; k < e; ++k)
        sum += mixed[static_cast<std::size_t>(i * e + k)] * p.at("attn.out_proj.weight").at(o * e + k);
      y.push_back(sum);
    }
  }
  return y;
}

}  // namespace

TEST_CASE("multi-head attention equals the loops") {
  const std::int64_t e = 4;
  const Dictionary p{{"attn.in_proj_weight", noise({3 * e, e}, 1)},
                     {"attn.in_proj_bias", noise({3 * e}, 2)},
                     {"attn.out_proj.weight", noise({e, e}, 3)},
                     {"attn.out_proj.bias", noise({e}, 4)}};
  const HostTensor x = noise({1, 3, e}, 5), other = noise({1, 5, e}, 6);
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    check_close(run_network({x}, p,
                            [&](Network& net, const auto& in) {
                              return self_attention(net, "attn", in[0], {.heads = 2, .causal = causal});
                            }),
                plain_attention(x, x, p, 2, causal));
    check_close(run_network({x, other}, p,
                            [&](Network& net, const auto& in) {
                              return multi_head_attention(net, "attn", in[0], in[1], in[1], {.heads = 2, .causal = causal});
                            }),
                plain_attention(x, other, p, 2, causal));
  }
  // A mask that forbids all but the first key: every query gets the same answer.
  const double low = -std::numeric_limits<double>::infinity();
  const HostTensor masked = run_network({x, floats({3}, {0, low, low})}, p, [&](Network& net, const auto& in) {
    return self_attention(net, "attn", in[0], {.heads = 1, .mask = in[1]});
  });
  CHECK(masked.at(0) == masked.at(e));
}

TEST_CASE("operators between tensors and numbers") {
  const HostTensor x = floats({2}, {1, 4});
  CHECK(values(activate(x, [](const Tensor& t) { return (t + 1) * 2 - t / 2; })) == std::vector<double>{3.5, 8});
  CHECK(values(activate(x, [](const Tensor& t) { return -(t - 1) * t; })) == std::vector<double>{0, -12});
  CHECK(values(activate(x, [](const Tensor& t) { return nn::concat({t, t}, 0); })) == std::vector<double>{1, 4, 1, 4});
  CHECK(values(activate(x, [](const Tensor& t) { return t.sum({0}, true); })) == std::vector<double>{5});
  CHECK(activate(x, [](const Tensor& t) { return t.cast(DType::i32); }).dtype() == DType::i32);
}

TEST_CASE("ResNet-18 has its shapes, its names and its parameters") {
  Network net("resnet18", nn::initial_parameters(1));
  const Expr n = net.symbol("N");
  const Tensor logits = resnet18::resnet18(net, net.input("input", DType::f32, {n, 3, 224, 224}));
  CHECK(logits.value()->type.text() == "f32[N, 1000]");
  net.output("output", logits);
  const auto module = net.finish();
  std::int64_t parameters = 0, convolutions = 0;
  bool named = false;
  for (const Node* node : module->entries[0]->nodes()) {
    if (node->op->name == "conv") ++convolutions;
    if (node->op->name == "conv" && node->source == "layer3.0.downsample.0") named = true;
    if (node->op->name == "constant" && node->output()->name.find('.') != std::string::npos)
      parameters += node->output()->type.elements().value();
  }
  CHECK(convolutions == 20);
  CHECK(named);
  CHECK(parameters == 11689512 + 2 * 4800);  // with the running statistics
}

TEST_CASE("initial parameters are reproducible and scaled by the fan-in") {
  const nn::Parameters a = nn::initial_parameters(1), b = nn::initial_parameters(1), c = nn::initial_parameters(2);
  const HostTensor w = a("x.weight", {4, 300});
  CHECK(values(w) == values(b("x.weight", {4, 300})));
  CHECK(values(w) != values(c("x.weight", {4, 300})));
  CHECK(values(w) != values(a("y.weight", {4, 300})));
  double largest = 0, squares = 0;
  for (const double v : values(w)) largest = std::max(largest, std::fabs(v)), squares += v * v;
  CHECK(largest <= 0.1);
  CHECK(squares / 1200 == doctest::Approx(1.0 / 300).epsilon(0.1));
  CHECK(a("bn.weight", {1}).at(0) == 1);
  CHECK(a("bn.running_var", {1}).at(0) == 1);
  CHECK(a("bn.running_mean", {1}).at(0) == 0);
  CHECK(a("fc.bias", {1}).at(0) == 0);
}

TEST_CASE("mistakes are told with the layer's name") {
  const auto error = [](Dictionary p, auto&& build) {
    return error_of([&] {
      Network net("net", nn::state_dictionary(std::move(p)));
      build(net, net.input("x", DType::f32, {net.symbol("N"), 3, 8, 8}));
      net.finish();
    });
  };
  const Dictionary none;
  CHECK(error(none, [](Network& net, const Tensor& x) { linear(net, "fc", x, 5); }) ==
        "node 'fc.weight' (parameter): wanted a tensor of shape [5, 8], found none of that name");
  CHECK(error({{"a.fc.weight", counting({1})}}, [](Network& net, const Tensor& x) {
          const Network::Scope scope(net, "a");
          linear(net, "fc", x, 5);
        }) == "node 'a.fc.weight' (parameter): wanted a tensor of shape [5, 8], found f32[1]");
  CHECK(error(none, [](Network& net, const Tensor& x) { conv(net, "c", x, 4, {.kernel = {3}}); }) ==
        "node 'c': wanted 2 kernel values for f32[N, 3, 8, 8], found [3]");
  CHECK(error({{"c.weight", counting({4, 1, 3, 3})}, {"c.bias", counting({4})}}, [](Network& net, const Tensor& x) {
          conv(net, "c", x, 4, {.kernel = {3, 3}, .groups = 2});
        }) == "node 'c' (conv): wanted 2 input channels (1 in each of 2 groups), found f32[N, 3, 8, 8]");
  CHECK(error(none, [](Network& net, const Tensor& x) { self_attention(net, "attn", x, {.heads = 3}); }) ==
        "node 'attn': wanted a number of heads that divides 8, found 3");
  CHECK(error(none, [](Network&, const Tensor& x) { (void)x.size(0); }) ==
        "wanted a known size of axis 0, found f32[N, 3, 8, 8]");
  CHECK(error(none, [](Network&, const Tensor& x) { (void)x.dim(4); }) == "wanted an axis from -4 to 3, found axis 4");
  CHECK(error(none, [](Network&, const Tensor&) {}) == "wanted network net with at least one output, found none");
  CHECK(error({{"w", counting({2})}}, [](Network& net, const Tensor&) {
          net.parameter("w", {2});
          net.parameter("w", {3});
        }) == "node 'w' (parameter): wanted one shape for all uses of f32[2], found [3]");
  CHECK(error(none, [](Network&, const Tensor& x) { x.slice(4, 0, 1); }) ==
        "(slice): wanted an axis of f32[N, 3, 8, 8], found axis 4");
}

// What a network written wrongly is told.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "compiler/support/error.h"
#include "frontends/cpp/nn.h"

using namespace oclc;
using nn::Network;
using nn::Tensor;

namespace {

// The text of the CompileError that `build` ends in.
std::string refusal(const std::function<void(Network&, const Tensor&)>& build, nn::Use use = nn::Use::inference) {
  Network net("test", nn::initial_parameters(), use);
  const Tensor x = net.input("x", DType::f32, {2, 3});
  try {
    build(net, x);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("an empty tensor is refused by every layer, operator and method") {
  const auto empty = [](const std::function<void(const Tensor&)>& use) {
    return refusal([&](Network&, const Tensor&) { use(Tensor()); });
  };
  CHECK(empty([](const Tensor& t) { nn::relu(t); }) == "(relu): wanted a tensor, found an empty one");
  CHECK(empty([](const Tensor& t) { nn::softmax(t); }) == "wanted a tensor, found an empty one");
  CHECK(empty([](const Tensor& t) { t.mean({0}); }) == "wanted a tensor, found an empty one");
  CHECK(empty([](const Tensor& t) { t.dim(0); }) == "wanted a tensor, found an empty one");
  CHECK(empty([](const Tensor& t) { t.cast(DType::i32); }) == "wanted a tensor, found an empty one");
  CHECK(empty([](const Tensor& t) { nn::global_avg_pool(t); }) == "wanted a tensor, found an empty one");
  CHECK(empty([](const Tensor& t) { nn::flatten(t); }) == "wanted a tensor, found an empty one");
  CHECK(empty([](const Tensor& t) { nn::leaky_relu(t); }) == "wanted a tensor, found an empty one");
  CHECK(empty([](const Tensor& t) { nn::max_pool(t, {.kernel = {2}}); }) == "wanted a tensor, found an empty one");
  CHECK(refusal([](Network&, const Tensor& x) { x + Tensor(); }) == "(add): wanted a tensor, found an empty one");
  CHECK(refusal([](Network&, const Tensor& x) { matmul(x, Tensor()); }) == "(matmul): wanted a tensor, found an empty one");
  CHECK(refusal([](Network&, const Tensor& x) {
          nn::concat({x, Tensor()}, 0);
        }) == "(concat): wanted a tensor, found an empty one");
  CHECK(refusal([](Network&, const Tensor&) { nn::concat({}, 0); }) == "(concat): wanted at least one tensor, found none");
  CHECK(refusal([](Network& net, const Tensor&) { linear(net, "fc", Tensor(), 2); }) ==
        "node 'fc' (linear): wanted a tensor of this network, found an empty one");
  CHECK(refusal([](Network& net, const Tensor&) {
          conv(net, "c", Tensor(), 2, {.kernel = {1, 1}});
        }) == "node 'c' (conv): wanted a tensor of this network, found an empty one");
  CHECK(refusal([](Network& net, const Tensor&) { embedding(net, "e", Tensor(), 2, 2); }) ==
        "node 'e' (embedding): wanted a tensor of this network, found an empty one");
  CHECK(refusal([](Network& net, const Tensor&) { net.output("y", Tensor()); }) ==
        "(output): wanted a tensor of this network, found an empty one");
}

TEST_CASE("a tensor of another network is refused") {
  Network other("other", nn::initial_parameters());
  const Tensor theirs = other.input("z", DType::f32, {2, 3});
  CHECK(refusal([&](Network&, const Tensor& x) { x + theirs; }) ==
        "(add): wanted a tensor of this network, found one of another");
  CHECK(refusal([&](Network& net, const Tensor&) { layer_norm(net, "ln", theirs); }) ==
        "node 'ln' (layer_norm): wanted a tensor of this network, found one of another");
}

TEST_CASE("apply takes the names of elementwise operators alone") {
  const auto applied = [](std::string_view op) { return refusal([&](Network&, const Tensor& x) { nn::apply(op, {x}); }); };
  CHECK(applied("relu") == "none");
  CHECK(applied("gelu").starts_with("(apply): wanted an elementwise core operator ("));
  CHECK(applied("gelu").find("), found 'gelu'; did you mean 'relu'?") != std::string::npos);
  CHECK(applied("softmax").find("), found 'softmax'") != std::string::npos);
  CHECK(applied("cast").find("), found 'cast'") != std::string::npos);
  CHECK(applied("add") == "(add): wanted 2 inputs, found 1");
}

TEST_CASE("inputs and outputs have a name each") {
  CHECK(refusal([](Network& net, const Tensor& x) {
          net.output("y", x);
          net.output("y", nn::relu(x));
        }) == "wanted a name for each output, found 'y' twice");
  CHECK(refusal([](Network& net, const Tensor&) { net.input("x", DType::f32, {1}); }) ==
        "wanted a name for each input, found 'x' twice");
  CHECK(refusal([](Network& net, const Tensor& x) { linear(net, "", x, 2), net.input("weight", DType::f32, {1}); },
                nn::Use::training) == "wanted a name for each input, found 'weight' twice");
  CHECK(refusal(
            [](Network& net, const Tensor& x) {
              net.input("fc.weight", DType::f32, {1});
              linear(net, "fc", x, 2);
            },
            nn::Use::training) == "node 'fc.weight': wanted a name for each input or parameter, found 'fc.weight' twice");
}

#include <doctest/doctest.h>

#include <cmath>

#include "tests/ops/run_op.h"

using namespace oclc;

namespace {

HostTensor matmul(const HostTensor& a, const HostTensor& b, bool trans_a = false, bool trans_b = false) {
  return run("matmul", {a, b}, {{"trans_a", std::int64_t{trans_a}}, {"trans_b", std::int64_t{trans_b}}});
}

HostTensor conv(const std::vector<HostTensor>& inputs, Ints strides, Ints dilations, Ints pads, std::int64_t group = 1) {
  return run(
      "conv", inputs,
      {{"strides", std::move(strides)}, {"dilations", std::move(dilations)}, {"pads", std::move(pads)}, {"group", group}});
}

HostTensor pool(std::string_view name, const HostTensor& x, Ints kernel, Ints strides, Ints pads, bool ceil_mode = false,
                bool with_pad = false) {
  Ints ones(kernel.size(), 1);
  return run(name, {x},
             {{"kernel", std::move(kernel)},
              {"strides", std::move(strides)},
              {"dilations", std::move(ones)},
              {"pads", std::move(pads)},
              {"ceil_mode", std::int64_t{ceil_mode}},
              {"count_include_pad", std::int64_t{with_pad}}});
}

}  // namespace

TEST_CASE("matmul, transposed and not, gives the same") {
  const HostTensor a = counting({2, 3}), b = counting({3, 2});
  const std::vector<double> wanted{22, 28, 49, 64};
  CHECK(values(matmul(a, b)) == wanted);
  CHECK(values(matmul(floats({3, 2}, {1, 4, 2, 5, 3, 6}), b, true)) == wanted);
  CHECK(values(matmul(a, floats({2, 3}, {1, 3, 5, 2, 4, 6}), false, true)) == wanted);
  CHECK(int_values(matmul(counting({2, 3}, DType::i32), counting({3, 2}, DType::i32))) == Ints{22, 28, 49, 64});
}

TEST_CASE("matmul broadcasts batches") {
  const HostTensor a = counting({2, 1, 1, 2}), b = counting({3, 2, 1});
  const HostTensor y = matmul(a, b);
  CHECK(y.shape() == Ints{2, 3, 1, 1});
  CHECK(values(y) == std::vector<double>{5, 11, 17, 11, 25, 39});
}

TEST_CASE("matmul over nothing is zero") {
  const HostTensor y = matmul(floats({2, 0}, {}), floats({0, 2}, {}));
  CHECK(values(y) == std::vector<double>{0, 0, 0, 0});
  CHECK(matmul(floats({0, 2}, {}), counting({2, 2})).shape() == Ints{0, 2});
}

TEST_CASE("convolution with padding, stride, dilation and bias") {
  const HostTensor x = counting({1, 1, 3, 3}), ones = floats({1, 1, 2, 2}, {1, 1, 1, 1});
  CHECK(values(conv({x, ones}, {1, 1}, {1, 1}, {0, 0, 0, 0})) == std::vector<double>{12, 16, 24, 28});
  CHECK(values(conv({x, ones, floats({1}, {100})}, {1, 1}, {2, 2}, {0, 0, 0, 0})) == std::vector<double>{120});
  CHECK(values(conv({x, ones}, {2, 2}, {1, 1}, {1, 1, 0, 0})) == std::vector<double>{1, 5, 11, 28});
  // Asymmetric: padding behind only.
  CHECK(values(conv({x, floats({1, 1, 1, 2}, {1, 10})}, {1, 1}, {1, 1}, {0, 0, 0, 1})) ==
        std::vector<double>{21, 32, 3, 54, 65, 6, 87, 98, 9});
}

TEST_CASE("convolution in groups, in one and in three dimensions") {
  const HostTensor x = counting({1, 2, 3});
  CHECK(values(conv({x, floats({2, 1, 2}, {1, 1, 1, -1})}, {1}, {1}, {0, 0}, 2)) == std::vector<double>{3, 5, -1, -1});
  CHECK(values(conv({x, floats({1, 2, 1}, {1, 10})}, {1}, {1}, {0, 0})) == std::vector<double>{41, 52, 63});
  const HostTensor cube = counting({1, 1, 2, 2, 2});
  CHECK(values(conv({cube, floats({1, 1, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1})}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 0})) ==
        std::vector<double>{36});
  const HostTensor batch = conv({counting({2, 1, 2}), floats({1, 1, 1}, {2})}, {1}, {1}, {0, 0});
  CHECK(values(batch) == std::vector<double>{2, 4, 6, 8});
  CHECK(conv({floats({0, 1, 2}, {}), floats({1, 1, 1}, {2})}, {1}, {1}, {0, 0}).shape() == Ints{0, 1, 2});
}

TEST_CASE("pooling") {
  const HostTensor x = counting({1, 1, 3, 3});
  CHECK(values(pool("max_pool", x, {2, 2}, {1, 1}, {0, 0, 0, 0})) == std::vector<double>{5, 6, 8, 9});
  CHECK(values(pool("avg_pool", x, {2, 2}, {1, 1}, {0, 0, 0, 0})) == std::vector<double>{3, 4, 6, 7});
  CHECK(values(pool("max_pool", floats({1, 1, 2}, {-5, -7}), {2}, {1}, {1, 1})) == std::vector<double>{-5, -5, -7});
  CHECK(values(pool("avg_pool", floats({1, 1, 2}, {4, 8}), {2}, {1}, {1, 1})) == std::vector<double>{4, 6, 8});
  CHECK(values(pool("avg_pool", floats({1, 1, 2}, {4, 8}), {2}, {1}, {1, 1}, false, true)) == std::vector<double>{2, 6, 4});
  // The last window overhangs by one: it counts its elements inside data and padding only.
  CHECK(values(pool("max_pool", counting({1, 1, 4}), {3}, {2}, {0, 0}, true)) == std::vector<double>{3, 4});
  CHECK(values(pool("avg_pool", counting({1, 1, 4}), {3}, {2}, {0, 0}, true, true)) == std::vector<double>{2, 3.5});
  CHECK(int_values(pool("max_pool", ints({1, 1, 2}, {-5, -7}, DType::i8), {2}, {1}, {0, 0})) == Ints{-5});
  CHECK(std::isnan(pool("max_pool", floats({1, 1, 2}, {1, std::nan("")}), {2}, {1}, {0, 0}).at(0)));
  CHECK(std::isnan(pool("max_pool", floats({1, 1, 2}, {std::nan(""), 1}), {2}, {1}, {0, 0}).at(0)));
}

TEST_CASE("dilated pooling skips") {
  const HostTensor y = run("max_pool", {floats({1, 1, 4}, {1, 9, 3, 4})},
                           {{"kernel", Ints{2}},
                            {"strides", Ints{1}},
                            {"dilations", Ints{2}},
                            {"pads", Ints{0, 0}},
                            {"ceil_mode", std::int64_t{0}}});
  CHECK(values(y) == std::vector<double>{3, 9});
}

TEST_CASE("symbolic sizes go through contractions") {
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  Graph graph;
  Builder b(graph);
  Value* x = graph.add_input("x", {DType::f32, {n, t, 768}});
  Value* w = graph.add_input("w", {DType::f32, {768, 64}});
  CHECK(b.matmul(x, w)->type.text() == "f32[N, T, 64]");
  CHECK(b.matmul(x, x, false, true)->type.text() == "f32[N, T, T]");
  Value* image = graph.add_input("image", {DType::f32, {n, 3, t, t * Expr(2)}});
  Value* kernel = graph.add_input("k", {DType::f32, {8, 3, 1, 1}});
  CHECK(b.conv(image, kernel, nullptr, {})->type.text() == "f32[N, 8, T, 2*T]");
}

TEST_CASE("contractions that do not fit are refused") {
  const HostTensor x = counting({1, 4, 5, 5});
  const auto conv_error = [&](const std::vector<HostTensor>& inputs, std::int64_t group = 1, Ints strides = {1, 1},
                              Ints pads = {0, 0, 0, 0}) {
    return error_of([&] { conv(inputs, std::move(strides), {1, 1}, std::move(pads), group); });
  };
  CHECK(
      error_of([] {
        matmul(counting({2, 3}), counting({2, 3}));
      }) ==
      "node 'node' (matmul): wanted matrices that agree on the summed dimension, found f32[2, 3] and f32[2, 3] (3 against 2)");
  CHECK(error_of([] {
          matmul(counting({2, 3}), counting({2, 3}), true, true);
        }) ==
        "node 'node' (matmul): wanted matrices that agree on the summed dimension, found f32[2, 3] transposed and f32[2, 3] "
        "transposed (2 against 3)");
  CHECK(error_of([] {
          matmul(counting({3}), counting({3, 1}));
        }) == "node 'node' (matmul): wanted operands of rank 2 or more, found f32[3] and f32[3, 1]");
  CHECK(error_of([] {
          matmul(counting({2, 1, 2}), counting({3, 2, 1}));
        }) == "node 'node' (matmul): wanted shapes that broadcast, found [2] and [3] (2 against 3)");
  CHECK(conv_error({x, counting({8, 3, 1, 1})}) ==
        "node 'node' (conv): wanted 3 input channels (3 in each of 1 groups), found f32[1, 4, 5, 5]");
  CHECK(conv_error({x, counting({3, 2, 1, 1})}, 2) ==
        "node 'node' (conv): wanted output channels divisible by 2 groups, found f32[3, 2, 1, 1]");
  CHECK(conv_error({x, counting({8, 4, 1, 1}), counting({4})}) ==
        "node 'node' (conv): wanted a bias of type f32[8], found f32[4]");
  CHECK(conv_error({x, counting({8, 4, 1})}) == "node 'node' (conv): wanted weights of rank 4, found f32[8, 4, 1]");
  CHECK(conv_error({x, counting({8, 4, 1, 1})}, 0) == "node 'node' (conv): wanted a positive group count, found 0");
  CHECK(conv_error({x, counting({8, 4, 1, 1})}, 1, {0, 1}) ==
        "node 'node' (conv): wanted strides from 1 to 2^31, found [0, 1]");
  CHECK(conv_error({x, counting({8, 4, 1, 1})}, 1, {1}) == "node 'node' (conv): wanted 2 strides, found 1");
  CHECK(conv_error({x, counting({8, 4, 1, 1})}, 1, {1, 1}, {0, -1, 0, 0}) ==
        "node 'node' (conv): wanted pads from 0 to 2^31, found [0, -1, 0, 0]");
  CHECK(conv_error({counting({4, 5}), counting({8, 4})}) ==
        "node 'node' (conv): wanted data of batch, channels and 1 to 3 spatial dimensions, found f32[4, 5]");
  CHECK(error_of([&] {
          pool("max_pool", x, {6, 6}, {1, 1}, {0, 0, 0, 0});
        }) ==
        "node 'node' (max_pool): wanted at least 6 elements for a window of 6 with dilation 1, found 5 with padding 0 and 0");
  CHECK(error_of([&] {
          pool("avg_pool", counting({1, 1, 2}, DType::i32), {1}, {1}, {0, 0});
        }) == "node 'node' (avg_pool): wanted floating-point operands, found i32[1, 1, 2]");
}

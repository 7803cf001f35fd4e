#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/ops/run_op.h"

using namespace oclc;

namespace {
const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

HostTensor reduce(std::string_view name, const HostTensor& x, Ints axes, bool keepdims = false) {
  return run(name, {x}, {{"axes", std::move(axes)}, {"keepdims", std::int64_t{keepdims}}});
}
HostTensor arg(std::string_view name, const HostTensor& x, std::int64_t axis, bool last = false) {
  return run(name, {x}, {{"axis", axis}, {"keepdims", std::int64_t{0}}, {"select_last", std::int64_t{last}}});
}
}  // namespace

TEST_CASE("reductions over one and several axes") {
  const HostTensor x = counting({2, 3, 2});
  CHECK(values(reduce("reduce_sum", x, {1})) == std::vector<double>{9, 12, 27, 30});
  CHECK(values(reduce("reduce_sum", x, {0, 2})) == std::vector<double>{18, 26, 34});
  CHECK(reduce("reduce_sum", x, {0, 2}, true).shape() == Ints{1, 3, 1});
  CHECK(values(reduce("reduce_mean", x, {0, 1, 2})) == std::vector<double>{6.5});
  CHECK(values(reduce("reduce_max", x, {0})) == std::vector<double>{7, 8, 9, 10, 11, 12});
  CHECK(values(reduce("reduce_min", x, {1, 2})) == std::vector<double>{1, 7});
  CHECK(values(reduce("reduce_prod", x, {1})) == std::vector<double>{15, 48, 693, 960});
  CHECK(values(reduce("reduce_sum", x, {})) == values(x));
  CHECK(values(reduce("reduce_sum", floats({}, {3}), {})) == std::vector<double>{3});
}

TEST_CASE("reductions of nothing") {
  const HostTensor x = floats({2, 0}, {});
  CHECK(values(reduce("reduce_sum", x, {1})) == std::vector<double>{0, 0});
  CHECK(values(reduce("reduce_prod", x, {1})) == std::vector<double>{1, 1});
  CHECK(values(reduce("reduce_max", x, {1})) == std::vector<double>{-kInf, -kInf});
  CHECK(values(reduce("reduce_min", x, {1})) == std::vector<double>{kInf, kInf});
  CHECK(std::isnan(reduce("reduce_mean", x, {1}).at(0)));
  CHECK(reduce("reduce_sum", x, {0}).shape() == Ints{0});
  CHECK(int_values(reduce("reduce_max", ints({0}, {}, DType::i32), {0})) == Ints{-2147483648});
  CHECK(int_values(reduce("reduce_min", ints({0}, {}, DType::u8), {0})) == Ints{255});
}

TEST_CASE("integer reductions wrap, and order u64 as unsigned") {
  CHECK(int_values(reduce("reduce_sum", ints({2}, {100, 100}, DType::i8), {0})) == Ints{-56});
  CHECK(int_values(reduce("reduce_mean", ints({2}, {-3, 0}), {0})) == Ints{-1});
  CHECK(int_values(reduce("reduce_max", ints({2}, {-1, 5}, DType::u64), {0})) == Ints{-1});
  CHECK(int_values(reduce("reduce_max", ints({2}, {-1, -5}), {0})) == Ints{-1});
  CHECK(int_values(reduce("reduce_min", ints({2}, {0, 1}, DType::boolean), {0})) == Ints{0});
}

TEST_CASE("a NaN wins maxima and minima wherever it stands") {
  for (const char* op : {"reduce_max", "reduce_min"}) {
    CHECK(std::isnan(reduce(op, floats({3}, {kNaN, 1, 2}), {0}).at(0)));
    CHECK(std::isnan(reduce(op, floats({3}, {1, kNaN, 2}), {0}).at(0)));
    CHECK(std::isnan(reduce(op, floats({3}, {1, 2, kNaN}), {0}).at(0)));
  }
}

TEST_CASE("argmax and argmin take the first, or the last, of equals") {
  const HostTensor x = floats({2, 3}, {1, 5, 5, 4, 0, 0});
  CHECK(int_values(arg("argmax", x, 1)) == Ints{1, 0});
  CHECK(int_values(arg("argmax", x, 1, true)) == Ints{2, 0});
  CHECK(int_values(arg("argmin", x, 1)) == Ints{0, 1});
  CHECK(int_values(arg("argmin", x, 1, true)) == Ints{0, 2});
  CHECK(int_values(arg("argmax", x, 0)) == Ints{1, 0, 0});
  CHECK(int_values(arg("argmax", floats({3}, {1, kNaN, 9}), 0)) == Ints{1});
  CHECK(int_values(arg("argmax", floats({3}, {kNaN, kNaN, 9}), 0, true)) == Ints{1});
  CHECK(int_values(arg("argmax", ints({2}, {1, -1}, DType::u64), 0)) == Ints{1});
  CHECK(arg("argmax", x, 1).dtype() == DType::i64);
}

TEST_CASE("softmax along any axis") {
  const HostTensor y = run("softmax", {floats({2, 2}, {0, std::log(3.0), 1000, 1000})}, {{"axis", std::int64_t{1}}});
  CHECK(y.at(0) == doctest::Approx(0.25));
  CHECK(y.at(1) == doctest::Approx(0.75));
  CHECK(y.at(2) == 0.5);
  const HostTensor columns = run("softmax", {floats({2, 1}, {0, std::log(3.0)})}, {{"axis", std::int64_t{0}}});
  CHECK(columns.at(1) == doctest::Approx(0.75));
  const HostTensor logs = run("log_softmax", {floats({2}, {-1000, 0})}, {{"axis", std::int64_t{0}}});
  CHECK(logs.at(0) == doctest::Approx(-1000));
  CHECK(logs.at(1) == 0);
  // A masked element weighs nothing.
  CHECK(run("softmax", {floats({2}, {-kInf, 0})}, {{"axis", std::int64_t{0}}}).at(0) == 0);
  CHECK(std::isnan(run("softmax", {floats({2}, {kNaN, 0})}, {{"axis", std::int64_t{0}}}).at(1)));
  CHECK(run("softmax", {floats({2, 0}, {})}, {{"axis", std::int64_t{1}}}).shape() == Ints{2, 0});
}

TEST_CASE("norms") {
  const Attributes last{{"axis", std::int64_t{1}}, {"epsilon", 0.0}};
  const HostTensor x = floats({2, 2}, {1, 3, -2, 2});
  CHECK(values(run("layer_norm", {x, floats({2}, {1, 10})}, last)) == std::vector<double>{-1, 10, -1, 10});
  CHECK(values(run("layer_norm", {x, floats({2}, {1, 10}), floats({2}, {5, 0})}, last)) == std::vector<double>{4, 10, 4, 10});
  const HostTensor all = run("layer_norm", {floats({2, 2}, {1, 1, 3, 3}), floats({2, 2}, {1, 1, 1, 1})},
                             {{"axis", std::int64_t{0}}, {"epsilon", 3.0}});
  CHECK(values(all) == std::vector<double>{-0.5, -0.5, 0.5, 0.5});
  const HostTensor rms = run("rms_norm", {floats({1, 2}, {3, 4}), floats({2}, {1, 1})}, last);
  CHECK(rms.at(0) == doctest::Approx(3 / std::sqrt(12.5)));
}

TEST_CASE("running sums") {
  const auto cumsum = [](const HostTensor& x, std::int64_t axis, bool exclusive, bool reverse) {
    return values(
        run("cumsum", {x}, {{"axis", axis}, {"exclusive", std::int64_t{exclusive}}, {"reverse", std::int64_t{reverse}}}));
  };
  const HostTensor x = counting({2, 3});
  CHECK(cumsum(x, 1, false, false) == std::vector<double>{1, 3, 6, 4, 9, 15});
  CHECK(cumsum(x, 1, true, false) == std::vector<double>{0, 1, 3, 0, 4, 9});
  CHECK(cumsum(x, 1, false, true) == std::vector<double>{6, 5, 3, 15, 11, 6});
  CHECK(cumsum(x, 1, true, true) == std::vector<double>{5, 3, 0, 11, 6, 0});
  CHECK(cumsum(x, 0, false, false) == std::vector<double>{1, 2, 3, 5, 7, 9});
  CHECK(cumsum(ints({2}, {127, 1}, DType::i8), 0, false, false) == std::vector<double>{127, -128});
}

TEST_CASE("reductions and rows that do not fit are refused") {
  const HostTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Attributes norm{{"axis", std::int64_t{1}}, {"epsilon", 0.0}};
  CHECK(error_of([&] { reduce("reduce_sum", x, {2}); }) ==
        "node 'node' (reduce_sum): wanted an axis from -2 to 1, found axis 2");
  CHECK(error_of([&] {
          reduce("reduce_sum", x, {1, 0});
        }) == "node 'node' (reduce_sum): wanted sorted axes from 0 on, found [1, 0]");
  CHECK(error_of([&] { reduce("reduce_sum", ints({1}, {1}, DType::boolean), {0}); }) ==
        "node 'node' (reduce_sum): wanted numbers, found bool[1]");
  CHECK(error_of([&] {
          arg("argmax", floats({2, 0}, {}), 1);
        }) == "node 'node' (argmax): wanted an axis with elements, found axis 1 of f32[2, 0]");
  CHECK(error_of([&] {
          run("softmax", {ints({2}, {1, 2})}, {{"axis", std::int64_t{0}}});
        }) == "node 'node' (softmax): wanted floating-point operands, found i64[2]");
  CHECK(error_of([&] {
          run("softmax", {floats({}, {1})}, {{"axis", std::int64_t{0}}});
        }) == "node 'node' (softmax): wanted an operand with at least one axis, found axis 0");
  CHECK(error_of([&] {
          run("layer_norm", {x, floats({2}, {1, 1})}, norm);
        }) == "node 'node' (layer_norm): wanted a scale of the normalised axes' type f32[3], found f32[2]");
  CHECK(error_of([&] {
          run("layer_norm", {x, floats({3}, {1, 1, 1}), floats({1}, {1})}, norm);
        }) == "node 'node' (layer_norm): wanted a bias of the normalised axes' type f32[3], found f32[1]");
  CHECK(error_of([&] {
          run("cumsum", {x}, {{"axis", std::int64_t{-1}}, {"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}});
        }) == "node 'node' (cumsum): wanted an axis from 0 on, found -1");
}

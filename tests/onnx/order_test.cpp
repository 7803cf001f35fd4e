// Orders, choices, writes at positions and running sums of more elements than a kernel compares pair by pair, beside their
// definitions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::order_test {

using oclc_onnx::TensorProto;
using Sizes = std::vector<std::int64_t>;

std::vector<HostTensor> results(const Writer& w, const std::vector<HostTensor>& inputs) {
  PlanRunner runner(std::shared_ptr<Module>(w.import()), default_options());
  return runner.run(inputs);
}

// Few different numbers, among them NaN.
HostTensor with_ties(const Sizes& shape, unsigned seed) {
  HostTensor x = random_tensor(DType::f32, shape, seed, -20, 20);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, std::abs(x.at(i)) > 19.5 ? NAN : std::floor(x.at(i)));
  return x;
}

bool below(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

TEST_CASE("TopK of long rows, along any axis") {
  constexpr std::int64_t kRow = 300, kInner = 3, kWanted = 17;
  for (const bool largest : {true, false}) {
    Writer w;
    w.input("x", {2, "n", kInner}).output("values").output("places").ints("k", {1}, {kWanted});
    NodeProto& node = w.node("TopK", {"x", "k"}, {"values", "places"}, "top");
    set_int(node, "axis", 1);
    set_int(node, "largest", largest ? 1 : 0);
    const HostTensor x = with_ties({2, kRow, kInner}, 3);
    const auto y = results(w, {x});
    REQUIRE(y[1].shape() == Sizes{2, kWanted, kInner});
    for (std::int64_t o = 0; o < 2; ++o) {
      for (std::int64_t r = 0; r < kInner; ++r) {
        const auto at = [&](std::int64_t i) { return x.at((o * kRow + i) * kInner + r); };
        std::vector<std::int64_t> wanted(kRow);
        std::iota(wanted.begin(), wanted.end(), 0);
        std::stable_sort(wanted.begin(), wanted.end(),
                         [&](std::int64_t a, std::int64_t b) { return largest ? below(at(b), at(a)) : below(at(a), at(b)); });
        for (std::int64_t p = 0; p < kWanted; ++p) {
          const std::int64_t place = (o * kWanted + p) * kInner + r, element = wanted[static_cast<std::size_t>(p)];
          CHECK(y[1].int_at(place) == element);
          CHECK((y[0].at(place) == at(element) || (std::isnan(y[0].at(place)) && std::isnan(at(element)))));
        }
      }
    }
  }
}

TEST_CASE("Many updates of elements, along an axis of data that is larger than the indices") {
  constexpr std::int64_t kRows = 4, kData = 50, kUpdates = 40;
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    Writer w(18);
    w.input("data", {kRows + 1, kData}).input("at", {kRows, kUpdates}, TensorProto::INT64).input("u", {kRows, kUpdates});
    w.output("y");
    NodeProto& node = w.node("ScatterElements", {"data", "at", "u"}, {"y"}, "scatter");
    set_int(node, "axis", 1);
    set_text(node, "reduction", reduction);
    const HostTensor data = random_tensor(DType::f32, {kRows + 1, kData}, 1),
                     u = random_tensor(DType::f32, {kRows, kUpdates}, 2),
                     at = random_tensor(DType::i64, {kRows, kUpdates}, 3, -kData, kData);
    const HostTensor y = results(w, {data, at, u})[0];
    std::vector<float> wanted;
    for (std::int64_t i = 0; i < data.elements(); ++i) wanted.push_back(static_cast<float>(data.at(i)));
    for (std::int64_t i = 0; i < u.elements(); ++i) {
      const std::int64_t column = at.int_at(i) < 0 ? at.int_at(i) + kData : at.int_at(i);
      float& to = wanted[static_cast<std::size_t>(i / kUpdates * kData + column)];
      const auto from = static_cast<float>(u.at(i));
      const std::string way = reduction;
      to = way == "none"  ? from
           : way == "add" ? to + from
           : way == "mul" ? to * from
           : way == "max" ? std::max(to, from)
                          : std::min(to, from);
    }
    for (std::int64_t i = 0; i < y.elements(); ++i) CHECK(static_cast<float>(y.at(i)) == wanted[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("Many updates of slices that name some more than once") {
  constexpr std::int64_t kUpdates = 70;
  Writer w(18);
  w.input("data", {5, 4, 3}).input("at", {"u", 2}, TensorProto::INT64).input("u", {"u", 3}).output("y");
  set_text(w.node("ScatterND", {"data", "at", "u"}, {"y"}, "scatter"), "reduction", "add");
  const HostTensor data = random_tensor(DType::f32, {5, 4, 3}, 1), u = random_tensor(DType::f32, {kUpdates, 3}, 2),
                   at = random_tensor(DType::i64, {kUpdates, 2}, 3, -4, 4);
  const HostTensor y = results(w, {data, at, u})[0];
  std::vector<float> wanted;
  for (std::int64_t i = 0; i < data.elements(); ++i) wanted.push_back(static_cast<float>(data.at(i)));
  for (std::int64_t i = 0; i < kUpdates; ++i) {
    const std::int64_t a = (at.int_at(2 * i) + 5) % 5, b = (at.int_at(2 * i + 1) + 4) % 4;
    for (std::int64_t k = 0; k < 3; ++k)
      wanted[static_cast<std::size_t>((a * 4 + b) * 3 + k)] += static_cast<float>(u.at(3 * i + k));
  }
  for (std::int64_t i = 0; i < y.elements(); ++i) CHECK(static_cast<float>(y.at(i)) == wanted[static_cast<std::size_t>(i)]);
}

TEST_CASE("Running sums and products of a long axis") {
  constexpr std::int64_t kLength = 5000;
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      Writer w(26);
      w.input("x", {2, "n", 2}, TensorProto::INT64).output("sums").output("products").ints("axis", {}, {1});
      for (const auto& [op, y] : {std::pair("CumSum", "sums"), std::pair("CumProd", "products")}) {
        NodeProto& node = w.node(op, {"x", "axis"}, {y}, op);
        set_int(node, "exclusive", exclusive ? 1 : 0);
        set_int(node, "reverse", reverse ? 1 : 0);
      }
      const HostTensor x = random_tensor(DType::i64, {2, kLength, 2}, 7, -9, 9);
      const auto y = results(w, {x});
      REQUIRE(y[0].shape() == x.shape());
      for (std::int64_t o = 0; o < 2; ++o) {
        for (std::int64_t r = 0; r < 2; ++r) {
          std::uint64_t sum = 0, product = 1;
          bool same = true;
          for (std::int64_t k = 0; k < kLength; ++k) {
            const std::int64_t i = (o * kLength + (reverse ? kLength - 1 - k : k)) * 2 + r;
            const auto own = static_cast<std::uint64_t>(x.int_at(i));
            if (!exclusive) sum += own, product *= own;
            same = same && y[0].int_at(i) == static_cast<std::int64_t>(sum) &&
                   y[1].int_at(i) == static_cast<std::int64_t>(product);
            if (exclusive) sum += own, product *= own;
          }
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("Positions of a value that is everywhere need no run") {
  Writer w;
  w.input("x", {"n", 3}).output("at").ints("one", {1}, {1});
  w.node("Shape", {"x"}, {"shape"});
  NodeProto& ones = w.node("ConstantOfShape", {"shape"}, {"ones"});
  set_ints(*attribute(ones, "value", AttributeProto::TENSOR).mutable_t(), "", {1}, {1});
  w.node("NonZero", {"ones"}, {"at"});
  const auto module = w.import();
  for (const auto& node : module->entries[0]->nodes()) CHECK(node->op->name != "positions");
  PlanRunner runner(std::shared_ptr<Module>(w.import()), default_options());
  const std::vector<HostTensor> inputs{HostTensor(DType::f32, {2, 3})};
  const HostTensor at = runner.run(inputs)[0];
  REQUIRE(at.shape() == Sizes{2, 6});
  for (std::int64_t i = 0; i < 6; ++i) CHECK((at.int_at(i) == i / 3 && at.int_at(6 + i) == i % 3));
}

}  // namespace oclc::test::order_test

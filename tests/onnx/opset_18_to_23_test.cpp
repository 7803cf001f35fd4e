// Operators that changed or came between opset 18 and 23, from the specification's text: examples of it, and loops written
// here.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/ops/reference/evaluate.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::opset_18_to_23_test {

using oclc_onnx::TensorProto;
using test::Writer;
using Dims = std::vector<std::int64_t>;
using Wanted = std::function<double(std::int64_t)>;

HostTensor noise(Dims shape, int seed, double size = 1) {
  HostTensor t(DType::f32, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, size * std::sin(static_cast<double>(i * 7 + seed * 13) * 0.7));
  return t;
}

HostTensor whole(DType dtype, Dims shape, const std::vector<std::int64_t>& values) {
  HostTensor t(dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set_int(i, values[static_cast<std::size_t>(i) % values.size()]);
  return t;
}

std::vector<test::Dim> dims(const HostTensor& t) { return {t.shape().begin(), t.shape().end()}; }

// Output `which`, by the reference and on the device.
void check(const Writer& w, const std::vector<HostTensor>& inputs, const Dims& shape, const Wanted& wanted,
           std::size_t which = 0) {
  const auto module = w.import();
  REQUIRE(verify(*module->entries[0]) == "");
  const HostTensor found = evaluate(*module->entries[0], inputs).at(which);
  REQUIRE(found.shape() == shape);
  for (std::int64_t i = 0; i < found.elements(); ++i) CHECK(found.at(i) == doctest::Approx(wanted(i)).epsilon(1e-4));
  CHECK(test::compare_with_reference(*module->entries[0], inputs).max_rel < 1e-5);
}

Wanted listed(std::vector<double> values) {
  return [values = std::move(values)](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
}

TEST_CASE("Bitwise operators take the bits of every integer type, with broadcasting") {
  struct Bits {
    DType dtype;
    int type;
  };
  for (const auto& [dtype, type] :
       {Bits{DType::i32, TensorProto::INT32}, Bits{DType::u8, TensorProto::UINT8}, Bits{DType::i64, TensorProto::INT64}}) {
    const HostTensor a = whole(dtype, {3, 1, 7}, {5, 0, 127, 3, 96, 1, 64, 77}), b = whole(dtype, {2, 1}, {9, 85});
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      Writer w(18);
      w.input("a", dims(a), type).input("b", dims(b), type).output("y");
      w.node(op, {"a", "b"}, {"y"});
      check(w, {a, b}, {3, 2, 7}, [&](std::int64_t i) {
        const std::int64_t x = a.int_at(i / 14 * 7 + i % 7), y = b.int_at(i / 7 % 2);
        return static_cast<double>(op[7] == 'A' ? x & y : op[7] == 'O' ? x | y : x ^ y);
      });
    }
    Writer w(18);
    w.input("a", dims(a), type).output("y");
    w.node("BitwiseNot", {"a"}, {"y"});
    check(w, {a}, a.shape(),
          [&](std::int64_t i) { return static_cast<double>(dtype == DType::u8 ? 255 - a.int_at(i) : ~a.int_at(i)); });
  }
}

TEST_CASE("GroupNormalization scales groups in opset 18 and channels in opset 21") {
  for (const std::int64_t opset : {18, 21}) {
    for (const std::int64_t groups : {1, 2, 6}) {
      const HostTensor x = noise({2, 6, 5, 1}, 1), scale = noise({opset == 18 ? groups : 6}, 2), bias = noise(scale.shape(), 3);
      Writer w(opset);
      w.input("x", dims(x)).input("s", dims(scale)).input("b", dims(bias)).output("y");
      test::set_int(w.node("GroupNormalization", {"x", "s", "b"}, {"y"}), "num_groups", groups);
      const std::int64_t run = 30 / groups;
      check(w, {x, scale, bias}, x.shape(), [&](std::int64_t i) {
        double mean = 0, square = 0;
        for (std::int64_t k = i / run * run; k < i / run * run + run; ++k) mean += x.at(k) / static_cast<double>(run);
        for (std::int64_t k = i / run * run; k < i / run * run + run; ++k)
          square += std::pow(x.at(k) - mean, 2) / static_cast<double>(run);
        const std::int64_t at = opset == 18 ? i / run % groups : i / 5 % 6;
        return (x.at(i) - mean) / std::sqrt(square + 1e-5) * scale.at(at) + bias.at(at);
      });
    }
  }
}

TEST_CASE("Mish and Gelu") {
  const HostTensor x = noise({5, 1, 3}, 1, 4);
  Writer mish(18);
  mish.input("x", dims(x)).output("y");
  mish.node("Mish", {"x"}, {"y"});
  check(mish, {x}, x.shape(), [&](std::int64_t i) { return x.at(i) * std::tanh(std::log1p(std::exp(x.at(i)))); });
  for (const bool exact : {true, false}) {
    Writer gelu(20);
    gelu.input("x", dims(x)).output("y");
    test::set_text(gelu.node("Gelu", {"x"}, {"y"}), "approximate", exact ? "none" : "tanh");
    check(gelu, {x}, x.shape(), [&](std::int64_t i) {
      const double v = x.at(i);
      return exact ? v / 2 * (1 + std::erf(v / std::sqrt(2.0)))
                   : v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
    });
  }
}

TEST_CASE("Reductions read their axes from an input, none mean all, or nothing") {
  const HostTensor x = noise({3, 5, 2}, 1);
  const auto model = [&](const std::vector<std::int64_t>& axes, bool noop) {
    Writer w(18);
    w.input("x", dims(x)).output("y");
    w.ints("axes", {static_cast<std::int64_t>(axes.size())}, axes);
    test::set_int(w.node("ReduceMean", {"x", "axes"}, {"y"}), "noop_with_empty_axes", noop);
    return w;
  };
  check(model({-2}, false), {x}, {3, 1, 2}, [&](std::int64_t i) {
    double sum = 0;
    for (std::int64_t k = 0; k < 5; ++k) sum += x.at(i / 2 * 10 + k * 2 + i % 2);
    return sum / 5;
  });
  check(model({}, false), {x}, {1, 1, 1}, [&](std::int64_t) {
    double sum = 0;
    for (std::int64_t k = 0; k < 30; ++k) sum += x.at(k);
    return sum / 30;
  });
  check(model({}, true), {x}, {3, 5, 2}, [&](std::int64_t i) { return x.at(i); });
}

TEST_CASE("ReduceMax and ReduceMin of booleans are or and and") {
  const HostTensor x = whole(DType::boolean, {4, 3}, {0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0});
  for (const bool max : {true, false}) {
    Writer w(20);
    w.input("x", {4, 3}, TensorProto::BOOL).output("y");
    w.ints("axes", {1}, {1});
    test::set_int(w.node(max ? "ReduceMax" : "ReduceMin", {"x", "axes"}, {"y"}), "keepdims", 0);
    check(w, {x}, {4}, max ? listed({1, 1, 1, 0}) : listed({0, 0, 1, 0}));
  }
}

TEST_CASE("Split into a number of parts leaves the last one smaller") {
  const HostTensor x = noise({2, 7}, 1);
  Writer w(18);
  w.input("x", {2, 7}).output("a").output("b").output("c");
  auto& node = w.node("Split", {"x"}, {"a", "b", "c"});
  test::set_int(node, "num_outputs", 3);
  test::set_int(node, "axis", -1);
  check(
      w, {x}, {2, 3}, [&](std::int64_t i) { return x.at(i / 3 * 7 + i % 3); }, 0);
  check(
      w, {x}, {2, 3}, [&](std::int64_t i) { return x.at(i / 3 * 7 + 3 + i % 3); }, 1);
  check(
      w, {x}, {2, 1}, [&](std::int64_t i) { return x.at(i * 7 + 6); }, 2);
}

TEST_CASE("Scatters keep the largest and the smallest") {
  const HostTensor x = noise({5, 3}, 1), updates = noise({4, 3}, 2);
  const HostTensor at = whole(DType::i64, {4, 3}, {0, -1, 2, 0, 1, 2, 3, -1, 2, 0, 4, 2});
  for (const bool max : {true, false}) {
    Writer w(18);
    w.input("x", {5, 3}).input("at", {4, 3}, TensorProto::INT64).input("u", {4, 3}).output("y");
    test::set_text(w.node("ScatterElements", {"x", "at", "u"}, {"y"}), "reduction", max ? "max" : "min");
    check(w, {x, at, updates}, {5, 3}, [&](std::int64_t i) {
      double best = x.at(i);
      for (std::int64_t k = 0; k < 12; ++k) {
        if (k % 3 != i % 3 || (at.int_at(k) + 5) % 5 != i / 3) continue;
        best = max ? std::max(best, updates.at(k)) : std::min(best, updates.at(k));
      }
      return best;
    });
    Writer nd(18);
    nd.input("x", {5, 3}).input("u", {3, 3}).output("y");
    nd.ints("at", {3, 1}, {4, 1, 4});
    test::set_text(nd.node("ScatterND", {"x", "at", "u"}, {"y"}), "reduction", max ? "max" : "min");
    const HostTensor rows = noise({3, 3}, 4);
    check(nd, {x, rows}, {5, 3}, [&](std::int64_t i) {
      double best = x.at(i);
      for (const std::int64_t k : {0, 1, 2}) {
        if (i / 3 != (k == 1 ? 1 : 4)) continue;
        best = max ? std::max(best, rows.at(k * 3 + i % 3)) : std::min(best, rows.at(k * 3 + i % 3));
      }
      return best;
    });
  }
}

TEST_CASE("Scatters keep an element that is larger than all of the updates that name it") {
  const HostTensor x = noise({2, 3}, 1), low = noise({2, 3}, 2, 0.01);
  for (const bool max : {true, false}) {
    Writer nd(18), elements(18);
    nd.input("x", {2, 3}).input("u", {2, 3}).output("y");
    elements.input("x", {2, 3}).input("u", {2, 3}).output("y");
    nd.ints("at", {2, 1}, {1, 1});
    elements.ints("at", {2, 3}, {1, 1, 1, 1, 1, 1});
    for (Writer* w : {&nd, &elements}) {
      test::set_text(w->node(w == &nd ? "ScatterND" : "ScatterElements", {"x", "at", "u"}, {"y"}), "reduction",
                     max ? "max" : "min");
      check(*w, {x, low}, {2, 3}, [&](std::int64_t i) {
        if (i < 3) return x.at(i);
        const double a = low.at(i - 3), b = low.at(i);
        return max ? std::max({x.at(i), a, b}) : std::min({x.at(i), a, b});
      });
    }
  }
}

TEST_CASE("AveragePool with dilations counts what lies inside") {
  const HostTensor x = noise({1, 2, 11}, 1);
  for (const bool counts : {false, true}) {
    Writer w(19);
    w.input("x", dims(x)).output("y");
    auto& node = w.node("AveragePool", {"x"}, {"y"});
    test::set_list(node, "kernel_shape", {3});
    test::set_list(node, "dilations", {3});
    test::set_list(node, "strides", {2});
    test::set_list(node, "pads", {2, 1});
    test::set_int(node, "count_include_pad", counts);
    check(w, {x}, {1, 2, 4}, [&](std::int64_t i) {
      double sum = 0, count = 0;
      for (std::int64_t k = 0; k < 3; ++k) {
        const std::int64_t at = i % 4 * 2 - 2 + k * 3;
        if (at >= 0 && at < 11) sum += x.at(i / 4 * 11 + at);
        count += counts || (at >= 0 && at < 11);
      }
      return sum / count;
    });
  }
}

Writer resized(const Dims& shape, const std::string& mode, const std::vector<float>& scales) {
  Writer w(18);
  w.input("x", std::vector<test::Dim>(shape.begin(), shape.end())).output("y");
  w.floats("scales", {static_cast<std::int64_t>(scales.size())}, scales);
  auto& node = w.node("Resize", {"x", "", "scales"}, {"y"});
  test::set_text(node, "mode", mode);
  test::set_int(node, "antialias", 1);
  return w;
}

TEST_CASE("Resize with antialias widens the filter") {
  HostTensor x(DType::f32, {1, 1, 4, 4});
  for (std::int64_t i = 0; i < 16; ++i) x.set(i, static_cast<double>(i + 1));
  check(resized({1, 1, 4, 4}, "linear", {1, 1, 0.6F, 0.6F}), {x}, {1, 1, 2, 2}, listed({2.875, 4.5, 9.375, 11}));
  check(resized({1, 1, 4, 4}, "cubic", {1, 1, 0.6F, 0.6F}), {x}, {1, 1, 2, 2},
        listed({2.5180721, 4.2858863, 9.589329, 11.357142}));
  const HostTensor line = noise({1, 3, 12}, 1);
  check(resized({1, 3, 12}, "linear", {1, 1, 0.25F}), {line}, {1, 3, 3}, [&](std::int64_t i) {
    double sum = 0, weights = 0;
    const double centre = (static_cast<double>(i % 3) + 0.5) * 4 - 0.5;
    for (std::int64_t k = -4; k < 16; ++k) {  // the border's elements go on outside
      const double weight = std::max(0.0, 1 - std::fabs(static_cast<double>(k) - centre) / 4);
      sum += weight * line.at(i / 3 * 12 + std::clamp<std::int64_t>(k, 0, 11));
      weights += weight;
    }
    return sum / weights;
  });
  const HostTensor rows = noise({1, 2, 3200, 2}, 1);
  check(resized({1, 2, 3200, 2}, "linear", {1, 1, 1.0F / 64, 1}), {rows}, {1, 2, 50, 2}, [&](std::int64_t i) {
    double sum = 0, weights = 0;
    const double centre = (static_cast<double>(i / 2 % 50) + 0.5) * 64 - 0.5;
    for (std::int64_t k = -64; k < 3264; ++k) {
      const double weight = std::max(0.0, 1 - std::fabs(static_cast<double>(k) - centre) / 64);
      sum += weight * rows.at(i / 100 * 6400 + std::clamp<std::int64_t>(k, 0, 3199) * 2 + i % 2);
      weights += weight;
    }
    return sum / weights;
  });
}

TEST_CASE("Resize keeps the aspect ratio of the axes it names") {
  const HostTensor x = noise({1, 1, 2, 2}, 1);
  for (const bool larger : {false, true}) {
    Writer w(18);
    w.input("x", dims(x)).output("y");
    w.ints("sizes", {2}, {7, 8});
    auto& node = w.node("Resize", {"x", "", "", "sizes"}, {"y"});
    test::set_text(node, "mode", "nearest");
    test::set_text(node, "keep_aspect_ratio_policy", larger ? "not_smaller" : "not_larger");
    test::set_list(node, "axes", {2, 3});
    const std::int64_t n = larger ? 8 : 7;
    const auto from = [&](std::int64_t i) {
      const double at = (static_cast<double>(i) + 0.5) * 2 / static_cast<double>(n) - 0.5;
      return static_cast<std::int64_t>(std::clamp(std::ceil(at - 0.5), 0.0, 1.0));  // halves down
    };
    check(w, {x}, {1, 1, n, n}, [&](std::int64_t i) { return x.at(from(i / n) * 2 + from(i % n)); });
  }
}

TEST_CASE("Resize by scales has no use for an aspect ratio's policy, written out or not") {
  const HostTensor x = noise({1, 1, 2, 2}, 1);
  Writer w(19);
  w.input("x", dims(x)).output("y");
  w.floats("scales", {4}, {1, 1, 2, 2});
  auto& node = w.node("Resize", {"x", "", "scales"}, {"y"});
  test::set_text(node, "mode", "nearest");
  test::set_text(node, "keep_aspect_ratio_policy", "stretch");
  check(w, {x}, {1, 1, 4, 4}, [&](std::int64_t i) { return x.at(i / 8 * 2 + i % 4 / 2); });
}

TEST_CASE("DFT takes its axis from an input") {
  const HostTensor x = noise({2, 7, 3, 1}, 1);
  for (const bool half : {false, true}) {
    Writer w(20);
    w.input("x", dims(x)).output("y");
    w.ints("axis", {}, {1});
    test::set_int(w.node("DFT", {"x", "", "axis"}, {"y"}), "onesided", half);
    const std::int64_t bins = half ? 4 : 7;
    check(w, {x}, {2, bins, 3, 2}, [&](std::int64_t i) {
      const std::int64_t part = i % 2, column = i / 2 % 3, k = i / 6 % bins, batch = i / (6 * bins);
      double sum = 0;
      for (std::int64_t n = 0; n < 7; ++n) {
        const double angle = -2 * std::acos(-1.0) * static_cast<double>(k * n) / 7;
        sum += x.at((batch * 7 + n) * 3 + column) * (part == 0 ? std::cos(angle) : std::sin(angle));
      }
      return sum;
    });
  }
}

TEST_CASE("DFT of the first half of a spectrum, inverse, is the real signal") {
  for (const std::int64_t length : {6, 7}) {
    const std::int64_t given = 5, bins = length / 2 + 1;
    const HostTensor x = noise({2, given, 3, 2}, 1);
    Writer w(20);
    w.input("x", dims(x)).output("y");
    w.ints("length", {}, {length}).ints("axis", {}, {1});
    auto& node = w.node("DFT", {"x", "length", "axis"}, {"y"});
    test::set_int(node, "onesided", 1);
    test::set_int(node, "inverse", 1);
    check(w, {x}, {2, length, 3, 1}, [&](std::int64_t i) {
      const std::int64_t column = i % 3, n = i / 3 % length, batch = i / (3 * length);
      double sum = 0;
      for (std::int64_t k = 0; k < length; ++k) {  // bins behind the half are conjugate to those before it
        const std::int64_t bin = k < bins ? k : length - k;
        const double re = x.at(((batch * given + bin) * 3 + column) * 2);
        const double im = (k < bins ? 1 : -1) * x.at(((batch * given + bin) * 3 + column) * 2 + 1);
        // The first bin and, for an even length, the middle one have no imaginary part.
        const bool real = bin == 0 || 2 * bin == length;
        const double angle = 2 * std::acos(-1.0) * static_cast<double>(k * n) / static_cast<double>(length);
        sum += re * std::cos(angle) - (real ? 0 : im * std::sin(angle));
      }
      return sum / static_cast<double>(length);
    });
  }
}

TEST_CASE("Quantisation by blocks, and to 16 bits") {
  const HostTensor x = whole(DType::u8, {2, 7}, {3, 200, 17, 90, 5, 128, 250, 1});
  const HostTensor scale = noise({2, 3}, 2), zero = whole(DType::u8, {2, 3}, {1, 2, 128, 7, 9, 0});
  Writer w(21);
  w.input("x", {2, 7}, TensorProto::UINT8).input("s", {2, 3}).input("z", {2, 3}, TensorProto::UINT8).output("y");
  auto& node = w.node("DequantizeLinear", {"x", "s", "z"}, {"y"});
  test::set_int(node, "axis", 1);
  test::set_int(node, "block_size", 3);
  check(w, {x, scale, zero}, {2, 7}, [&](std::int64_t i) {
    const std::int64_t block = i / 7 * 3 + i % 7 / 3;
    return (x.at(i) - zero.at(block)) * scale.at(block);
  });
  const HostTensor v = noise({3, 5}, 1, 900);
  Writer wide(21);
  wide.input("x", dims(v)).output("y");
  wide.floats("s", {}, {0.03125F});
  auto& t = *wide.graph().add_initializer();
  t.set_name("z");
  t.set_data_type(TensorProto::INT16);
  t.add_int32_data(-100);
  wide.node("QuantizeLinear", {"x", "s", "z"}, {"y"});
  check(wide, {v}, {3, 5},
        [&](std::int64_t i) { return std::clamp(std::nearbyint(v.at(i) / 0.03125) - 100, -32768.0, 32767.0); });
  Writer named(21);
  named.input("x", dims(v)).output("y");
  named.floats("s", {3}, {1, 4, 8});
  auto& q = named.node("QuantizeLinear", {"x", "s"}, {"y"});
  test::set_int(q, "axis", 0);
  test::set_int(q, "output_dtype", TensorProto::INT8);
  check(named, {v}, {3, 5}, [&](std::int64_t i) {
    return std::clamp(std::nearbyint(v.at(i) / (i < 5 ? 1 : i < 10 ? 4 : 8)), -128.0, 127.0);
  });
}

TEST_CASE("IsInf and IsNaN of 16-bit floats") {
  HostTensor x(DType::f16, {5});
  const double inf = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < 5; ++i) x.set(i, listed({inf, -inf, std::nan(""), 0, 70000})(i));
  const auto model = [&](const char* op, bool only_negative) {
    Writer w(20);
    w.input("x", {5}, TensorProto::FLOAT16).output("y");
    auto& node = w.node(op, {"x"}, {"y"});
    if (only_negative) test::set_int(node, "detect_positive", 0);
    return w;
  };
  check(model("IsInf", false), {x}, {5}, listed({1, 1, 0, 0, 1}));
  check(model("IsInf", true), {x}, {5}, listed({0, 1, 0, 0, 0}));
  check(model("IsNaN", false), {x}, {5}, listed({0, 0, 1, 0, 0}));
}

TEST_CASE("LpPool with dilations") {
  const HostTensor x = noise({1, 1, 10}, 1);
  for (const std::int64_t p : {1, 2, 3}) {
    Writer w(18);
    w.input("x", dims(x)).output("y");
    auto& node = w.node("LpPool", {"x"}, {"y"});
    test::set_list(node, "kernel_shape", {3});
    test::set_list(node, "dilations", {2});
    test::set_list(node, "strides", {2});
    test::set_int(node, "p", p);
    check(w, {x}, {1, 1, 3}, [&](std::int64_t i) {
      double sum = 0;
      for (std::int64_t k = 0; k < 3; ++k) sum += std::pow(std::fabs(x.at(i * 2 + k * 2)), static_cast<double>(p));
      return std::pow(sum, 1 / static_cast<double>(p));
    });
  }
}

}  // namespace oclc::opset_18_to_23_test

// Operators and shapes that ONNX's own test data does not cover: opsets after 17, symbolic dimensions, data-dependent shapes.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::ops_test {

using oclc_onnx::TensorProto;
using test::Writer;

HostTensor floats(std::vector<std::int64_t> shape, const std::vector<double>& values) {
  HostTensor t(DType::f32, std::move(shape));
  REQUIRE(t.elements() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), values[i]);
  return t;
}

// 0, 1, 2, ...
HostTensor ramp(std::vector<std::int64_t> shape) {
  HostTensor t(DType::f32, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, static_cast<double>(i));
  return t;
}

std::vector<double> values(const HostTensor& t) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < t.elements(); ++i) out.push_back(t.at(i));
  return out;
}

HostTensor run(const Writer& w, const std::vector<HostTensor>& inputs) {
  const auto module = w.import();
  REQUIRE(verify(*module->entries[0]) == "");
  return evaluate(*module->entries[0], inputs).at(0);
}

void check_near(const HostTensor& found, const std::vector<double>& wanted) {
  REQUIRE(found.elements() == static_cast<std::int64_t>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    CHECK(found.at(static_cast<std::int64_t>(i)) == doctest::Approx(wanted[i]).epsilon(1e-5));
}

// y = op(x) for x of shape [N].
HostTensor unary(const std::string& op, std::int64_t opset, const std::vector<double>& x,
                 const std::function<void(test::NodeProto&)>& with = {}) {
  Writer w(opset);
  w.input("x", {"N"}).output("y");
  auto& node = w.node(op, {"x"}, {"y"});
  if (with) with(node);
  return run(w, {floats({static_cast<std::int64_t>(x.size())}, x)});
}

std::string type_of(const Writer& w) { return w.import()->entries[0]->outputs()[0].second->type.text(); }

TEST_CASE("activations of opsets 18 and 20") {
  const std::vector<double> x = {-2, -0.5, 0, 1, 3};
  std::vector<double> gelu, tanh, mish;
  for (const double v : x) {
    gelu.push_back(v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))));
    tanh.push_back(v * 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (v + 0.044715 * v * v * v))));
    mish.push_back(v * std::tanh(std::log1p(std::exp(v))));
  }
  check_near(unary("Gelu", 20, x), gelu);
  check_near(unary("Gelu", 20, x, [](auto& n) { test::set_text(n, "approximate", "tanh"); }), tanh);
  check_near(unary("Mish", 18, x), mish);
}

TEST_CASE("softmax before opset 13 takes the axes from its axis on as one") {
  Writer old(12), now(13);
  for (Writer* w : {&old, &now}) {
    w->input("x", {"N", 2, 2}).output("y");
    test::set_int(w->node("Softmax", {"x"}, {"y"}), "axis", 1);
  }
  const HostTensor x = floats({1, 2, 2}, {0, 0, 0, 0});
  check_near(run(old, {x}), {0.25, 0.25, 0.25, 0.25});
  check_near(run(now, {x}), {0.5, 0.5, 0.5, 0.5});
}

TEST_CASE("reductions with axes as input") {
  Writer w(18);
  w.input("x", {"N", 3}).output("y").ints("axes", {1}, {-1});
  test::set_int(w.node("ReduceMax", {"x", "axes"}, {"y"}), "keepdims", 0);
  CHECK(type_of(w) == "f32[N]");
  check_near(run(w, {ramp({2, 3})}), {2, 5});
  Writer none(18);
  none.input("x", {2, 3}).output("y");
  test::set_int(none.node("ReduceSum", {"x"}, {"y"}), "noop_with_empty_axes", 1);
  check_near(run(none, {ramp({2, 3})}), {0, 1, 2, 3, 4, 5});
  Writer all(18);
  all.input("x", {2, 3}).output("y");
  all.node("ReduceSum", {"x"}, {"y"});
  check_near(run(all, {ramp({2, 3})}), {15});
}

TEST_CASE("split into a number of parts, the last one smaller") {
  Writer w(18);
  w.input("x", {7}).output("c");
  test::set_int(w.node("Split", {"x"}, {"a", "b", "c"}), "num_outputs", 3);
  check_near(run(w, {ramp({7})}), {6});
}

TEST_CASE("pad along some axes, also by negative amounts") {
  Writer w(18);
  w.input("x", {2, 3}).output("y").ints("pads", {2}, {1, -1}).ints("axes", {1}, {1}).floats("fill", {}, {9});
  w.node("Pad", {"x", "pads", "fill", "axes"}, {"y"});
  check_near(run(w, {ramp({2, 3})}), {9, 0, 1, 9, 3, 4});
}

TEST_CASE("group normalisation before and after opset 21") {
  const HostTensor x = floats({1, 4, 2}, {1, 3, 1, 3, 5, 9, 5, 9});
  for (const bool by_channel : {false, true}) {
    Writer w(by_channel ? 21 : 18);
    w.input("x", {"N", 4, 2}).output("y");
    if (by_channel) {
      w.floats("s", {4}, {1, 1, 2, 2}).floats("b", {4}, {0, 0, 5, 5});
    } else {
      w.floats("s", {2}, {1, 2}).floats("b", {2}, {0, 5});
    }
    auto& node = w.node("GroupNormalization", {"x", "s", "b"}, {"y"});
    test::set_int(node, "num_groups", 2);
    test::set_float(node, "epsilon", 0);
    check_near(run(w, {x}), {-1, 1, -1, 1, 3, 7, 3, 7});
  }
}

TEST_CASE("shapes computed by the model stay symbolic") {
  Writer w;
  w.input("x", {"N", "T", 12}).output("y").ints("zero", {1}, {0}).ints("one", {1}, {1}).ints("tail", {2}, {3, -1});
  w.node("Shape", {"x"}, {"s"});
  w.node("Gather", {"s", "zero"}, {"n"});
  w.node("Gather", {"s", "one"}, {"t"});
  test::set_int(w.node("Concat", {"n", "t", "tail"}, {"shape"}), "axis", 0);
  w.node("Reshape", {"x", "shape"}, {"y"});
  CHECK(type_of(w) == "f32[N, T, 3, 4]");
  Writer merged;
  merged.input("x", {"N", "T", 12}).output("y").ints("shape", {2}, {-1, 12});
  merged.node("Reshape", {"x", "shape"}, {"y"});
  CHECK(type_of(merged) == "f32[N*T, 12]");
}

TEST_CASE("slices of symbolic dimensions") {
  const auto slice = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    Writer w;
    w.input("x", {"T"}).output("y").ints("s", {1}, {start}).ints("e", {1}, {end}).ints("a", {1}, {0}).ints("p", {1}, {step});
    w.node("Slice", {"x", "s", "e", "a", "p"}, {"y"});
    return w;
  };
  CHECK(type_of(slice(0, INT64_MAX, 1)) == "f32[T]");
  CHECK(type_of(slice(0, -1, 1)) == "f32[T - 1]");
  CHECK(type_of(slice(-1, INT64_MAX, 1)) == "f32[1]");
  CHECK(values(run(slice(1, INT32_MAX, 1), {ramp({4})})) == std::vector<double>{1, 2, 3});
  CHECK(values(run(slice(-1, INT64_MIN, -1), {ramp({4})})) == std::vector<double>{3, 2, 1, 0});
  CHECK(values(run(slice(-3, 100, 2), {ramp({4})})) == std::vector<double>{1, 3});
  CHECK(values(run(slice(2, 3, 1), {ramp({2})})).empty());
  CHECK(values(run(slice(INT64_MIN, 2, 1), {ramp({4})})) == std::vector<double>{0, 1});
}

TEST_CASE("dimensions are bound by name and by an input's shape") {
  Writer w;
  w.input("x", {"N", "T"}).input("z", {"N", 1}).output("y", {"N", "T"});
  w.node("Add", {"x", "z"}, {"y"});
  ImportOptions options;
  options.dims["N"] = 4;
  CHECK(w.import(options)->entries[0]->outputs()[0].second->type.text() == "f32[4, T]");
  CHECK(w.import(options)->symbols.size() == 1);
  options.dims.clear();
  options.shapes["z"] = {5, 1};
  CHECK(w.import(options)->entries[0]->inputs()[0]->type.text() == "f32[5, T]");
}

TEST_CASE("an input can be made a constant") {
  Writer w;
  w.input("x", {6}).input("shape", {2}, TensorProto::INT64).output("y");
  w.node("Reshape", {"x", "shape"}, {"y"}, "fold");
  ImportOptions options;
  options.constants["shape"] = HostTensor::from_ints(std::vector<std::int64_t>{2, -1});
  const auto module = w.import(options);
  CHECK(module->entries[0]->inputs().size() == 1);
  CHECK(module->entries[0]->outputs()[0].second->type.text() == "f32[2, 3]");
  // Without it the shape is read when the plan runs.
  CHECK(w.import()->entries[0]->outputs()[0].second->type.rank() == 2);
}

TEST_CASE("shapes that go through floating-point arithmetic are folded") {
  Writer w;
  w.input("x", {"N", 8}).output("y").floats("half", {}, {0.5}).ints("one", {1}, {1}).ints("front", {1}, {-1});
  w.node("Shape", {"x"}, {"s"});
  w.node("Gather", {"s", "one"}, {"size"});
  test::set_int(w.node("Cast", {"size"}, {"wide"}), "to", TensorProto::FLOAT);
  w.node("Mul", {"wide", "half"}, {"scaled"});
  w.node("Floor", {"scaled"}, {"whole"});
  test::set_int(w.node("Cast", {"whole"}, {"columns"}), "to", TensorProto::INT64);
  test::set_int(w.node("Concat", {"front", "columns"}, {"shape"}), "axis", 0);
  w.node("Reshape", {"x", "shape"}, {"y"});
  CHECK(type_of(w) == "f32[2*N, 4]");
}

TEST_CASE("a table sliced up to a symbol bounds the symbol if shapes fit only so") {
  Writer w;
  w.input("x", {"N", "T", 2}).output("y").ints("zero", {1}, {0}).ints("one", {1}, {1});
  w.floats("table", {5, 2}, std::vector<float>(10, 1));
  w.node("Shape", {"x"}, {"s"});
  w.node("Gather", {"s", "one"}, {"t"});
  w.node("Slice", {"table", "zero", "t", "zero"}, {"rows"}, "cut");
  w.node("Add", {"x", "rows"}, {"y"});
  std::vector<std::string> warnings;
  ImportOptions options;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto module = w.import(options);
  CHECK(module->entries[0]->outputs()[0].second->type.text() == "f32[N, T, 2]");
  CHECK(module->symbols.at(1).upper() == 5);
  CHECK(warnings == std::vector<std::string>{"T is limited to 5: node 'cut' takes the first T of 5 positions"});
}

// An LSTM layer computed step by step.
std::vector<double> lstm(const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& r,
                         bool reverse) {
  // One unit, one input, batch 1; gates in the order input, output, forget, cell.
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  double h = 0, c = 0;
  std::vector<double> out(x.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t t = reverse ? x.size() - 1 - k : k;
    double g[4];
    for (std::size_t i = 0; i < 4; ++i) g[i] = w[i] * x[t] + r[i] * h;
    c = sigmoid(g[2]) * c + sigmoid(g[0]) * std::tanh(g[3]);
    h = sigmoid(g[1]) * std::tanh(c);
    out[t] = h;
  }
  return out;
}

TEST_CASE("LSTM in both directions over a symbolic sequence") {
  const std::vector<double> w0 = {0.5, -0.3, 0.8, 1.0}, r0 = {0.1, 0.2, -0.4, 0.6}, w1 = {-0.2, 0.7, 0.3, -0.9},
                            r1 = {0.4, 0.1, 0.5, -0.3};
  std::vector<float> w(w0.begin(), w0.end()), r(r0.begin(), r0.end());
  w.insert(w.end(), w1.begin(), w1.end());
  r.insert(r.end(), r1.begin(), r1.end());
  for (const bool batch_first : {false, true}) {
    Writer model;
    model.input("x", batch_first ? std::vector<test::Dim>{"N", "T", 1} : std::vector<test::Dim>{"T", "N", 1}).output("y");
    model.floats("w", {2, 4, 1}, w).floats("r", {2, 4, 1}, r);
    auto& node = model.node("LSTM", {"x", "w", "r"}, {"y", "h", "c"});
    test::set_text(node, "direction", "bidirectional");
    test::set_int(node, "hidden_size", 1);
    test::set_int(node, "layout", batch_first);
    CHECK(type_of(model) == (batch_first ? "f32[N, T, 2, 1]" : "f32[T, 2, N, 1]"));
    const std::vector<double> x = {1, -2, 0.5, 3};
    const std::vector<double> forward = lstm(x, w0, r0, false), backward = lstm(x, w1, r1, true);
    std::vector<double> wanted;
    for (std::size_t t = 0; t < x.size(); ++t) wanted.insert(wanted.end(), {forward[t], backward[t]});
    const std::vector<std::int64_t> shape =
        batch_first ? std::vector<std::int64_t>{1, 4, 1} : std::vector<std::int64_t>{4, 1, 1};
    check_near(run(model, {floats(shape, x)}), wanted);
  }
}

TEST_CASE("nodes keep the model's names") {
  Writer w;
  w.input("x", {"N", 4}).output("y");
  w.node("Relu", {"x"}, {"a"}, "first");
  w.node("Neg", {"a"}, {"y"});
  const auto module = w.import();
  const auto nodes = module->entries[0]->nodes();
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0]->source == "first");
  CHECK(nodes[1]->source == "Neg_1");
  CHECK(nodes[0]->output()->name == "a");
  CHECK(module->entries[0]->name == "predict");
}

}  // namespace oclc::ops_test

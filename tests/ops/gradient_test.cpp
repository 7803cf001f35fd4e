// Every operator's gradient against finite differences of the reference in double, over awkward shapes.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "compiler/ops/autodiff.h"
#include "tests/ops/run_op.h"

using namespace oclc;

namespace {

// One operator on operands of these shapes. Floating-point operands are drawn from [low, high); integer ones are given.
struct Case {
  std::string_view op;
  std::vector<Ints> shapes{};
  Attributes attributes{};
  double low = -1, high = 1;
  std::map<std::size_t, HostTensor> given{};  // operands that are no variables
  std::size_t outputs = SIZE_MAX;             // that the loss reads
};

HostTensor drawn(const Ints& shape, double low, double high, std::mt19937_64& random) {
  HostTensor t(DType::f64, shape);
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.set(i, low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53));
  return t;
}

HostTensor as(const HostTensor& t, DType dtype) {
  if (!is_float(t.dtype())) return t;
  HostTensor result(dtype, t.shape());
  for (std::int64_t i = 0; i < t.elements(); ++i) result.set(i, t.at(i));
  return result;
}

// The operator, a random projection of its results as loss, and the gradients of its floating-point operands.
struct Differentiated {
  Graph graph;
  std::vector<std::size_t> variables;  // operands

  Differentiated(const Case& c, const std::vector<HostTensor>& operands, DType dtype) {
    Builder b(graph, "node");
    std::vector<Value*> inputs, wrt;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (c.given.count(i)) {
        inputs.push_back(b.constant(as(c.given.at(i), dtype)));
        continue;
      }
      inputs.push_back(graph.add_input("x" + std::to_string(i), as(operands[i], dtype).type()));
      wrt.push_back(inputs.back());
      variables.push_back(i);
    }
    Attributes attributes = c.attributes;
    const Node* node = b.node(c.op, inputs, attributes);
    std::mt19937_64 random(7);
    Value* loss = nullptr;
    for (const auto& output : node->outputs) {
      if (static_cast<std::size_t>(output->index) >= c.outputs) break;
      Ints shape, axes;
      for (const Expr& dim : output->type.shape) {
        axes.push_back(static_cast<std::int64_t>(shape.size()));
        shape.push_back(dim.value());
      }
      Value* weights = b.constant(as(drawn(shape, 0.5, 1.5, random), output->type.dtype));
      Value* part = b.cast(b.mul(output.get(), weights), dtype);
      if (!axes.empty()) part = b.reduce("reduce_sum", part, axes, false);
      loss = loss ? b.add(loss, part) : part;
    }
    graph.add_output("loss", loss);
    for (Value* gradient : add_gradients(graph, loss, wrt))
      graph.add_output("d" + std::to_string(graph.outputs().size()), gradient);
  }

  std::vector<HostTensor> run(const std::vector<HostTensor>& operands, DType dtype) const {
    std::vector<HostTensor> inputs;
    for (const std::size_t i : variables) inputs.push_back(as(operands[i], dtype));
    return evaluate(graph, inputs);
  }
};

double magnitude(const HostTensor& t) {
  double most = 0;
  for (std::int64_t i = 0; i < t.elements(); ++i) most = std::max(most, std::fabs(t.at(i)));
  return most;
}

// Largest deviation relative to the largest magnitude.
double deviation(const HostTensor& found, const HostTensor& wanted) {
  double most = 0;
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    const double d = std::fabs(found.at(i) - wanted.at(i));
    most = d <= most ? most : d;
  }
  return most == 0 ? 0 : most / std::max(magnitude(wanted), 1e-6);
}

void check(const Case& c) {
  CAPTURE(c.op);
  std::string shapes;
  for (const Ints& shape : c.shapes) {
    for (const std::int64_t d : shape) shapes += std::to_string(d) + " ";
    shapes += "; ";
  }
  CAPTURE(shapes);
  std::mt19937_64 random(3);
  std::vector<HostTensor> operands;
  for (const Ints& shape : c.shapes) {
    const auto given = c.given.find(operands.size());
    operands.push_back(given == c.given.end() ? drawn(shape, c.low, c.high, random) : given->second);
  }
  const Differentiated exact(c, operands, DType::f64), rounded(c, operands, DType::f32);
  CHECK(verify(exact.graph) == "");
  const std::vector<HostTensor> found = exact.run(operands, DType::f64), single = rounded.run(operands, DType::f32);
  constexpr double kStep = 1e-5;
  for (std::size_t v = 0; v < exact.variables.size(); ++v) {
    CAPTURE(v);
    const HostTensor& at = operands[exact.variables[v]];
    REQUIRE(found[v + 1].shape() == at.shape());
    HostTensor differences(DType::f64, at.shape());
    for (std::int64_t i = 0; i < at.elements(); ++i) {
      double losses[2];
      for (int side = 0; side < 2; ++side) {
        std::vector<HostTensor> moved = operands;
        moved[exact.variables[v]] = as(at, DType::f64);
        moved[exact.variables[v]].set(i, at.at(i) + (side == 0 ? kStep : -kStep));
        losses[side] = exact.run(moved, DType::f64)[0].at(0);
      }
      differences.set(i, (losses[0] - losses[1]) / (2 * kStep));
    }
    CHECK(deviation(found[v + 1], differences) <= 1e-6);
    CHECK(deviation(single[v + 1], found[v + 1]) <= 1e-3);
  }
}

using Exprs = std::vector<Expr>;

const std::vector<Ints> kShapes = {{}, {1}, {17}, {3, 17}, {1, 3, 1}, {0}, {3, 0}};

// Where an elementwise operator is smooth.
std::pair<double, double> domain(std::string_view op) {
  if (op == "log" || op == "sqrt" || op == "rsqrt" || op == "reciprocal" || op == "pow") return {0.3, 2};
  if (op == "asin" || op == "acos" || op == "atanh") return {-0.9, 0.9};
  if (op == "acosh") return {1.1, 3};
  if (op == "div") return {0.5, 2};
  // The quotient of any two lies between 1 and 2 one way, 1/2 and 1 the other.
  if (op == "mod" || op == "fmod") return {1.01, 1.99};
  return {-2, 2};
}

std::vector<Case> contraction_cases() {
  std::vector<Case> cases;
  const auto flags = [](std::int64_t a, std::int64_t b) { return Attributes{{"trans_a", a}, {"trans_b", b}}; };
  const auto swapped = [](Ints shape, std::int64_t yes) {
    if (yes) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return shape;
  };
  const std::vector<std::pair<Ints, Ints>> pairs = {
      {{3, 5}, {5, 2}},       {{1, 1}, {1, 1}},          {{17, 1}, {1, 3}},
      {{2, 3, 4}, {4, 5}},    {{4, 3}, {2, 3, 5}},       {{2, 3, 4}, {1, 4, 5}},
      {{2, 3, 4}, {2, 4, 1}}, {{3, 1, 2, 4}, {2, 4, 3}}, {{2, 1, 3, 4}, {1, 3, 4, 2}},
      {{0, 3}, {3, 2}},       {{2, 0}, {0, 3}},          {{1, 2, 3}, {3, 2}}};
  for (const auto& [a, b] : pairs) {
    for (std::int64_t f = 0; f < 4; ++f)
      cases.push_back({"matmul", {swapped(a, f & 1), swapped(b, f & 2)}, flags(f & 1, f >> 1)});
  }
  return cases;
}

std::vector<Case> window_cases() {
  std::vector<Case> cases;
  struct Window {
    Ints x, kernel, strides, dilations, pads;
  };
  const std::vector<Window> windows = {
      {{1, 2, 1}, {1}, {1}, {1}, {0, 0}},
      {{2, 4, 17}, {3}, {2}, {1}, {1, 0}},
      {{2, 2, 5, 4}, {3, 2}, {1, 1}, {1, 1}, {1, 0, 1, 1}},
      {{1, 4, 7, 6}, {3, 3}, {2, 3}, {2, 1}, {2, 1, 0, 1}},
      {{1, 2, 5, 5}, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
      {{1, 2, 3, 4, 3}, {2, 3, 2}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1, 1, 1, 0}},
      {{0, 2, 4}, {2}, {1}, {1}, {0, 0}},
  };
  for (const Window& w : windows) {
    const Attributes attributes{{"strides", w.strides}, {"dilations", w.dilations}, {"pads", w.pads}};
    for (const std::int64_t group : {std::int64_t{1}, std::int64_t{2}, w.x[1]}) {
      Ints weights{2 * group, w.x[1] / group};
      weights.insert(weights.end(), w.kernel.begin(), w.kernel.end());
      Attributes conv = attributes;
      conv["group"] = group;
      cases.push_back({"conv", {w.x, weights, {weights[0]}}, conv});
      if (group == 1) cases.push_back({"conv", {w.x, weights}, conv});
      // The same with the sizes that convolution gives: its adjoints.
      Graph graph;
      Builder b(graph);
      Attributes transposed = conv, weight = conv;
      const Shape positions = b.call("conv",
                                     {graph.add_input("x", HostTensor(DType::f64, w.x).type()),
                                      graph.add_input("w", HostTensor(DType::f64, weights).type())},
                                     conv)
                                  ->type.shape;
      Ints y;
      for (const Expr& d : positions) y.push_back(d.value());
      transposed["output_shape"] = Exprs(w.x.begin() + 2, w.x.end());
      weight["kernel"] = w.kernel;
      cases.push_back({"conv_transpose", {y, weights}, transposed});
      cases.push_back({"conv_weight_grad", {w.x, y}, weight});
    }
    for (const std::int64_t ceil_mode : {0, 1}) {
      Attributes pool = attributes;
      pool["kernel"] = w.kernel;
      pool["ceil_mode"] = ceil_mode;
      cases.push_back({"max_pool", {w.x}, pool, -4, 4});
      for (const std::int64_t include : {0, 1}) {
        pool["count_include_pad"] = include;
        cases.push_back({"avg_pool", {w.x}, pool});
      }
    }
  }
  Attributes pool{{"strides", Ints{2, 1}}, {"dilations", Ints{1, 1}},      {"pads", Ints{0, 1, 1, 0}},
                  {"kernel", Ints{3, 2}},  {"ceil_mode", std::int64_t{0}}, {"input_shape", Exprs{6, 3}}};
  cases.push_back({"max_pool_grad",
                   {{1, 1, 3, 3}, {1, 1, 3, 3}},
                   pool,
                   -1,
                   1,
                   {{0, ints({1, 1, 3, 3}, {1, 2, 5, 1, 0, 4, 3, 3, 2}, DType::i32)}}});
  pool["count_include_pad"] = std::int64_t{1};
  cases.push_back({"avg_pool_grad", {{2, 1, 3, 3}}, pool});
  return cases;
}

std::vector<Case> row_cases() {
  std::vector<Case> cases;
  for (const std::string_view op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
    for (const std::int64_t keep : {0, 1}) {
      for (const Ints& axes : {Ints{}, Ints{1}, Ints{0, 2}, Ints{0, 1, 2}})
        cases.push_back({op, {{3, 4, 2}}, {{"axes", axes}, {"keepdims", keep}}});
      cases.push_back({op, {{17}}, {{"axes", Ints{0}}, {"keepdims", keep}}});
      cases.push_back({op, {{1, 1}}, {{"axes", Ints{0}}, {"keepdims", keep}}});
      cases.push_back({op, {{0, 3}}, {{"axes", Ints{1}}, {"keepdims", keep}}});
    }
  }
  // Running statistics follow the batch's without a gradient.
  for (const std::int64_t training : {0, 1}) {
    const Attributes norm{{"epsilon", 1e-5}, {"momentum", 0.9}, {"training", training}};
    const std::map<std::size_t, HostTensor> running{{3, floats({3}, {0.1, -0.2, 0.3})}, {4, floats({3}, {1, 0.5, 2})}};
    for (const Ints& x : {Ints{4, 3}, Ints{2, 3, 1, 5}, Ints{17, 3, 2}})
      cases.push_back({"batch_norm", {x, {3}, {3}, {3}, {3}}, norm, -1, 1, running, 1});
  }
  cases.push_back({"dropout", {{3, 17}}, {{"ratio", 0.5}}});
  for (const Ints& axes : {Ints{1}, Ints{0, 2}, Ints{0, 1, 2}}) cases.push_back({"moments", {{3, 4, 2}}, {{"axes", axes}}});
  cases.push_back({"moments", {{1, 17}}, {{"axes", Ints{0}}}});
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    const Ints x{3, 4, 5};
    const Ints scale(x.begin() + axis, x.end());
    const Attributes norm{{"axis", axis}, {"epsilon", 1e-5}};
    cases.push_back({"layer_norm", {x, scale, scale}, norm});
    cases.push_back({"layer_norm", {x, scale}, norm});
    cases.push_back({"rms_norm", {x, scale}, norm});
  }
  for (const std::string_view op : {"softmax", "log_softmax"}) {
    for (std::int64_t axis = 0; axis < 3; ++axis) cases.push_back({op, {{3, 4, 5}}, {{"axis", axis}}, -3, 3});
    cases.push_back({op, {{17, 1}}, {{"axis", std::int64_t{1}}}});
    cases.push_back({op, {{0, 3}}, {{"axis", std::int64_t{1}}}});
  }
  return cases;
}

std::vector<Case> movement_cases() {
  const auto slice = [](Ints shape, Exprs starts, Exprs sizes, Ints steps) {
    return Case{"slice", {std::move(shape)}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}};
  };
  const auto pad = [](Ints shape, Exprs before, Exprs after) {
    return Case{
        "pad", {std::move(shape)}, {{"before", before}, {"after", after}, {"value", 2.0}, {"mode", std::string("constant")}}};
  };
  return {
      {"reshape", {{3, 4}}, {{"shape", Shape{2, 6}}}},
      {"reshape", {{1}}, {{"shape", Shape{}}}},
      {"reshape", {{0, 3}}, {{"shape", Shape{3, 0}}}},
      {"transpose", {{2, 3, 4}}, {{"perm", Ints{2, 0, 1}}}},
      {"transpose", {{1, 17}}, {{"perm", Ints{1, 0}}}},
      {"expand", {{3, 1}}, {{"shape", Shape{2, 3, 4}}}},
      {"expand", {{}}, {{"shape", Shape{17}}}},
      {"expand", {{3, 4}}, {{"shape", Shape{3, 1}}}},
      {"expand", {{1}}, {{"shape", Shape{0}}}},
      slice({17}, {0}, {17}, {1}),
      slice({17}, {3}, {5}, {1}),
      slice({17}, {1}, {5}, {3}),
      slice({17}, {1}, {6}, {3}),
      slice({17}, {0}, {6}, {3}),
      slice({17}, {16}, {17}, {-1}),
      slice({17}, {16}, {6}, {-3}),
      slice({17}, {15}, {5}, {-3}),
      slice({17}, {5}, {1}, {4}),
      slice({17}, {4}, {0}, {2}),
      slice({3, 4}, {1, 3}, {2, 2}, {1, -2}),
      slice({5, 4}, {0, 0}, {3, 2}, {2, 2}),
      pad({3}, {2}, {1}),
      pad({2, 3}, {0, 1}, {2, 0}),
      pad({0}, {1}, {2}),
      {"concat", {{2, 3}, {2, 1}, {2, 17}}, {{"axis", std::int64_t{1}}}},
      {"concat", {{3}}, {{"axis", std::int64_t{0}}}},
      {"concat", {{0, 2}, {1, 2}}, {{"axis", std::int64_t{0}}}},
      {"cumsum", {{3, 5}}, {{"axis", std::int64_t{1}}, {"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}}},
      {"cumsum", {{3, 5}}, {{"axis", std::int64_t{0}}, {"exclusive", std::int64_t{1}}, {"reverse", std::int64_t{0}}}},
      {"cumsum", {{17}}, {{"axis", std::int64_t{0}}, {"exclusive", std::int64_t{1}}, {"reverse", std::int64_t{1}}}},
      {"gather_elements", {{3, 5}, {3, 1}}, {{"axis", std::int64_t{1}}}, -1, 1, {{1, ints({3, 1}, {4, 0, -1})}}},
      {"gather_elements",
       {{3, 5}, {3, 4}},
       {{"axis", std::int64_t{1}}},
       -1,
       1,
       {{1, ints({3, 4}, {4, 0, -1, 0, 1, 1, 1, -5, 2, 3, 0, 2})}}},
      {"gather_elements",
       {{4, 5}, {2, 3}},
       {{"axis", std::int64_t{0}}},
       -1,
       1,
       {{1, ints({2, 3}, {0, -1, 3, 0, 2, 1}, DType::i32)}}},
      {"gather", {{5, 3}, {2, 3}}, {{"axis", std::int64_t{0}}}, -1, 1, {{1, ints({2, 3}, {-1, 4, 0, 0, 2, 0})}}},
      {"gather", {{2, 5, 3}, {4}}, {{"axis", std::int64_t{1}}}, -1, 1, {{1, ints({4}, {1, -5, 1, 3}, DType::i32)}}},
      {"gather", {{2, 17}, {3}}, {{"axis", std::int64_t{1}}}, -1, 1, {{1, ints({3}, {16, 2, 2})}}},
      {"gather", {{2, 17}, {0}}, {{"axis", std::int64_t{1}}}, -1, 1, {{1, ints({0}, {})}}},
      {"scatter_add",
       {{4}, {2, 4, 3}},
       {{"axis", std::int64_t{1}}, {"size", Exprs{5}}},
       -1,
       1,
       {{0, ints({4}, {1, -5, 1, 3})}}},
      {"gather_nd", {{4, 5}, {3, 2}}, {{"batch_dims", std::int64_t{0}}}, -1, 1, {{1, ints({3, 2}, {0, 1, -1, 4, 0, 1})}}},
      {"gather_nd",
       {{4, 5, 2}, {2, 3, 1}},
       {{"batch_dims", std::int64_t{0}}},
       -1,
       1,
       {{1, ints({2, 3, 1}, {0, 1, -1, 3, 0, 1})}}},
      {"gather_nd",
       {{2, 4, 3}, {2, 3, 1}},
       {{"batch_dims", std::int64_t{1}}},
       -1,
       1,
       {{1, ints({2, 3, 1}, {0, 1, -1, 3, 0, 1})}}},
      {"gather", {{5, 3}, {}}, {{"axis", std::int64_t{0}}}, -1, 1, {{1, ints({}, {-2})}}},
      {"gather", {{5, 3}, {1}}, {{"axis", std::int64_t{1}}}, -1, 1, {{1, ints({1}, {1})}}},
  };
}

}  // namespace

TEST_CASE("gradients of elementwise operators are those of finite differences") {
  for (const OpDef* def : all_ops()) {
    if (!def->scalar || def->scalar->float_text.empty() || def->scalar->result_is_bool) continue;
    const auto [low, high] = domain(def->name);
    if (def->name == "where") {
      const HostTensor condition = ints({3, 1}, {1, 0, 1}, DType::boolean);
      check({"where", {{3, 1}, {3, 17}, {17}}, {}, low, high, {{0, condition}}});
      check({"where", {{3, 1}, {1}, {3, 1}}, {}, low, high, {{0, condition}}});
    } else if (def->min_inputs == 1) {
      for (const Ints& shape : kShapes) check({def->name, {shape}, {}, low, high});
    } else {
      const std::vector<std::pair<Ints, Ints>> pairs = {{{}, {}},          {{3, 17}, {3, 17}}, {{3, 17}, {17}},
                                                        {{3, 1}, {1, 17}}, {{1}, {2, 1, 3}},   {{3, 17}, {}},
                                                        {{0}, {1}},        {{2, 1, 3}, {4, 1}}};
      for (const auto& [a, b] : pairs) {
        if (def->min_inputs == 2) check({def->name, {a, b}, {}, low, high});
        if (def->min_inputs == 3) check({def->name, {a, b, {1}}, {}, low, high});
      }
    }
  }
}

TEST_CASE("gradients of powers with a constant exponent need no logarithm") {
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 2.5, -2.0}) {
    CAPTURE(exponent);
    check({"pow", {{3, 17}, {}}, {}, 0.3, 2, {{1, floats({}, {exponent})}}});
  }
  // Of negative numbers too.
  for (const double exponent : {2.0, 3.0, -1.0, 4.0}) check({"pow", {{17}, {1}}, {}, -2, -0.5, {{1, floats({1}, {exponent})}}});
}

TEST_CASE("gradients of contractions are those of finite differences") {
  for (const Case& c : contraction_cases()) check(c);
}

TEST_CASE("gradients of convolutions, pooling and their adjoints are those of finite differences") {
  for (const Case& c : window_cases()) check(c);
}

TEST_CASE("gradients of reductions and rows are those of finite differences") {
  for (const Case& c : row_cases()) check(c);
}

TEST_CASE("gradients of movement, indexing and scans are those of finite differences") {
  for (const Case& c : movement_cases()) check(c);
}

TEST_CASE("gradients of casts between floats") {
  for (const DType to : {DType::f64, DType::f32}) {
    Graph graph;
    Builder b(graph, "node");
    Value* x = graph.add_input("x", {DType::f32, {3}});
    Value* loss = b.reduce("reduce_sum", b.cast(b.mul(b.cast(x, to), b.cast(x, to)), DType::f32), {0}, false);
    graph.add_output("dx", add_gradients(graph, loss, std::vector<Value*>{x}).at(0));
    CHECK(values(evaluate(graph, std::vector<HostTensor>{floats({3}, {1, 2, -3})}).at(0)) == std::vector<double>{2, 4, -6});
  }
}

namespace {

// The gradients of the sum of the operator's results at one point.
std::vector<std::vector<double>> gradients_at(std::string_view op, const std::vector<HostTensor>& inputs,
                                              Attributes attributes = {}) {
  Graph graph;
  Builder b(graph, "node");
  std::vector<Value*> operands;
  for (const HostTensor& input : inputs) operands.push_back(graph.add_input("x", input.type()));
  Value* y = b.call(op, operands, std::move(attributes));
  Value* loss = b.reduce("reduce_sum", b.reshape(y, {y->type.elements()}), {0}, false);
  for (Value* gradient : add_gradients(graph, loss, operands)) graph.add_output("dx", gradient);
  std::vector<std::vector<double>> result;
  for (const HostTensor& t : evaluate(graph, inputs)) result.push_back(values(t));
  return result;
}

using List = std::vector<double>;
using Lists = std::vector<List>;

}  // namespace

TEST_CASE("case 112: gradients at kinks and ties") {
  CHECK(gradients_at("relu", {floats({3}, {-1, 0, 2})}) == Lists{{0, 0, 1}});
  CHECK(gradients_at("abs", {floats({3}, {-1, 0, 2})}) == Lists{{-1, 0, 1}});
  CHECK(gradients_at("max", {floats({3}, {1, 2, 3}), floats({3}, {2, 2, 2})}) == Lists{{0, 0.5, 1}, {1, 0.5, 0}});
  CHECK(gradients_at("min", {floats({3}, {1, 2, 3}), floats({3}, {2, 2, 2})}) == Lists{{1, 0.5, 0}, {0, 0.5, 1}});
  const Attributes pool{
      {"kernel", Ints{3}}, {"strides", Ints{3}}, {"dilations", Ints{1}}, {"pads", Ints{0, 0}}, {"ceil_mode", std::int64_t{0}}};
  CHECK(gradients_at("max_pool", {floats({1, 1, 6}, {1, 7, 7, 4, 4, 4})}, pool) == Lists{{0, 1, 0, 1, 0, 0}});
  const Attributes row{{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}};
  CHECK(gradients_at("reduce_max", {floats({2, 4}, {1, 5, 5, 2, 4, 4, 4, 4})}, row) ==
        Lists{{0, 0.5, 0.5, 0, 0.25, 0.25, 0.25, 0.25}});
  CHECK(gradients_at("reduce_min", {floats({1, 4}, {1, 5, 1, 2})}, row) == Lists{{0.5, 0, 0.5, 0}});
  // A product with one zero has a gradient there alone, with two nowhere.
  CHECK(gradients_at("reduce_prod", {floats({2, 3}, {2, 0, 3, 0, 4, 0})}, row) == Lists{{0, 6, 0, 0, 0, 0}});
  CHECK(gradients_at("pow", {floats({3}, {0, 0, 2}), floats({3}, {0, 2, 0})})[0] == List{0, 0, 0});
  CHECK(gradients_at("pow", {floats({2}, {0, 0}), floats({2}, {0, 2})})[1] == List{0, 0});
  for (const std::string_view op : {"floor", "ceil", "round", "sign"})
    CHECK(gradients_at(op, {floats({2}, {0.5, -1.5})}) == Lists{{0, 0}});
}

TEST_CASE("every operator has a gradient or a reason to have none") {
  const std::map<std::string_view, std::string_view> reasons = {
      {"loop", "a loop would need its intermediate values kept"},
  };
  std::set<std::string_view> made_by_passes;
  for (const OpDef& def : lowering_ops()) made_by_passes.insert(def.name);
  for (const OpDef* def : all_ops()) {
    CAPTURE(def->name);
    const bool excused =
        reasons.count(def->name) != 0 || made_by_passes.count(def->name) != 0 || def->kind == OpKind::generator;
    CHECK((def->gradient != nullptr) != excused);
  }
}

#include "tests/support/gradient_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/ops/gradients/autodiff.h"
#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/ops/run_op.h"

namespace oclc::test {
namespace {

using Case = GradientCase;

HostTensor drawn(const Ints& shape, double low, double high, std::mt19937_64& random) {
  HostTensor t(DType::f64, shape);
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.set(i, low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53));
  return t;
}

double magnitude(const HostTensor& t) {
  double most = 0;
  for (std::int64_t i = 0; i < t.elements(); ++i) most = std::max(most, std::fabs(t.at(i)));
  return most;
}

using Exprs = std::vector<Expr>;

const std::vector<Ints> kShapes = {{}, {1}, {17}, {3, 17}, {1, 3, 1}, {0}, {3, 0}};

// Where an elementwise operator is smooth.
std::pair<double, double> domain(std::string_view op) {
  if (op == "log" || op == "sqrt" || op == "rsqrt" || op == "reciprocal" || op == "pow" || op == "lgamma") return {0.3, 2};
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
      {{1, 3, 13, 11}, {5, 3}, {3, 2}, {1, 3}, {0, 4, 3, 1}},
      {{3, 1, 1, 17}, {1, 7}, {1, 5}, {1, 2}, {0, 6, 0, 0}},
      {{0, 2, 4}, {2}, {1}, {1}, {0, 0}},
  };
  for (const Window& w : windows) {
    const Attributes attributes{{"strides", w.strides}, {"dilations", w.dilations}, {"pads", w.pads}};
    for (const std::int64_t group : {std::int64_t{1}, std::int64_t{2}, w.x[1]}) {
      if (w.x[1] % group != 0) continue;
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
  pool["count_include_pad"] = std::int64_t{0};
  cases.push_back({"avg_pool_grad", {{1, 17, 3, 3}}, pool});
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
  for (const Ints& x : {Ints{3, 17}, Ints{1}}) cases.push_back({"dropout", {x}, {{"ratio", 0.5}}});
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
      {"scatter_add", {{1}, {1, 17}}, {{"axis", std::int64_t{0}}, {"size", Exprs{1}}}, -1, 1, {{0, ints({1}, {-1})}}},
      {"scatter_add",
       {{2, 3}, {2, 3, 7}},
       {{"axis", std::int64_t{0}}, {"size", Exprs{17}}},
       -1,
       1,
       {{0, ints({2, 3}, {16, 0, 16, 3, -17, 5})}}},
      {"pad", {{1, 17}}, {{"before", Exprs{0, 3}}, {"after", Exprs{2, 1}}, {"value", 0.0}, {"mode", std::string("constant")}}},
      {"transpose", {{3, 1, 17, 2}}, {{"perm", Ints{3, 1, 0, 2}}}},
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

std::vector<Case> elementwise_cases() {
  std::vector<Case> cases;
  for (const OpDef* def : all_ops()) {
    if (!def->scalar || !is_differentiable(*def)) continue;
    const auto [low, high] = domain(def->name);
    if (def->name == "where") {
      const HostTensor condition = ints({3, 1}, {1, 0, 1}, DType::boolean);
      cases.push_back({"where", {{3, 1}, {3, 17}, {17}}, {}, low, high, {{0, condition}}});
      cases.push_back({"where", {{3, 1}, {1}, {3, 1}}, {}, low, high, {{0, condition}}});
    } else if (def->min_inputs == 1) {
      for (const Ints& shape : kShapes) cases.push_back({def->name, {shape}, {}, low, high});
    } else {
      const std::vector<std::pair<Ints, Ints>> pairs = {{{}, {}},          {{3, 17}, {3, 17}}, {{3, 17}, {17}},
                                                        {{3, 1}, {1, 17}}, {{1}, {2, 1, 3}},   {{3, 17}, {}},
                                                        {{0}, {1}},        {{2, 1, 3}, {4, 1}}};
      for (const auto& [a, b] : pairs) {
        if (def->min_inputs == 2) cases.push_back({def->name, {a, b}, {}, low, high});
        if (def->min_inputs == 3) cases.push_back({def->name, {a, b, {1}}, {}, low, high});
      }
    }
  }
  // Powers with a constant exponent need no logarithm: of negative numbers too.
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 2.5, -2.0})
    cases.push_back({"pow", {{3, 17}, {}}, {}, 0.3, 2, {{1, floats({}, {exponent})}}});
  for (const double exponent : {2.0, 3.0, -1.0, 4.0})
    cases.push_back({"pow", {{17}, {1}}, {}, -2, -0.5, {{1, floats({1}, {exponent})}}});
  for (const Ints& shape : kShapes) cases.push_back({"cast", {shape}, {{"dtype", DType::f64}}});
  return cases;
}

}  // namespace

bool is_differentiable(const OpDef& def) {
  if (!def.gradient || def.gradient == no_gradient) return false;
  return !def.scalar || (!def.scalar->float_text.empty() && !def.scalar->result_is_bool);
}

std::vector<GradientCase> gradient_cases() {
  std::vector<Case> all;
  for (const auto& family : {elementwise_cases(), contraction_cases(), window_cases(), row_cases(), movement_cases()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

std::string GradientCase::text() const {
  std::string text;
  for (const Ints& shape : shapes) text += fmt::format("{}[{}]", text.empty() ? "" : " ", fmt::join(shape, ","));
  return text;
}

std::vector<HostTensor> GradientCase::operands() const {
  std::mt19937_64 random(3);
  std::vector<HostTensor> list;
  for (const Ints& shape : shapes) {
    const auto at = given.find(list.size());
    list.push_back(at == given.end() ? drawn(shape, low, high, random) : at->second);
  }
  return list;
}

HostTensor as_floats(const HostTensor& t, DType dtype) {
  if (!is_float(t.dtype())) return t;
  HostTensor result(dtype, t.shape());
  for (std::int64_t i = 0; i < t.elements(); ++i) result.set(i, t.at(i));
  return result;
}

DifferentiatedCase differentiate(Graph& graph, const GradientCase& c, const std::vector<HostTensor>& operands, DType dtype) {
  DifferentiatedCase result;
  Builder b(graph, fmt::format("{}{}", c.op, graph.inputs().size()));
  std::vector<Value*> inputs, wrt;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (c.given.count(i)) {
      inputs.push_back(b.constant(as_floats(c.given.at(i), dtype)));
      continue;
    }
    inputs.push_back(graph.add_input(fmt::format("x{}", graph.inputs().size()), as_floats(operands[i], dtype).type()));
    wrt.push_back(inputs.back());
    result.variables.push_back(i);
  }
  Attributes attributes = c.attributes;
  const Node* node = b.node(c.op, inputs, attributes);
  std::mt19937_64 random(7);
  for (const auto& output : node->outputs) {
    if (static_cast<std::size_t>(output->index) >= c.outputs) break;
    Ints shape, axes;
    for (const Expr& dim : output->type.shape) {
      axes.push_back(static_cast<std::int64_t>(shape.size()));
      shape.push_back(dim.value());
    }
    Value* weights = b.constant(as_floats(drawn(shape, 0.5, 1.5, random), output->type.dtype));
    Value* part = b.cast(b.mul(output.get(), weights), dtype);
    if (!axes.empty()) part = b.reduce("reduce_sum", part, axes, false);
    result.loss = result.loss ? b.add(result.loss, part) : part;
  }
  result.gradients = add_gradients(graph, result.loss, wrt);
  return result;
}

GradientReference reference_gradients(const GradientCase& c) {
  constexpr double kStep = 1e-5;
  const std::vector<HostTensor> operands = c.operands();
  Graph forward, whole;
  forward.add_output("loss", differentiate(forward, c, operands, DType::f64).loss);
  forward.erase_dead();
  const DifferentiatedCase made = differentiate(whole, c, operands, DType::f64);
  for (Value* gradient : made.gradients) whole.add_output(fmt::format("d{}", whole.outputs().size()), gradient);
  OCLC_CHECK(verify(whole).empty(), verify(whole));
  std::vector<HostTensor> inputs;
  for (const std::size_t i : made.variables) inputs.push_back(operands[i]);
  GradientReference result{evaluate(whole, inputs), {}};
  for (std::size_t v = 0; v < inputs.size(); ++v) {
    HostTensor& differences = result.differences.emplace_back(DType::f64, inputs[v].shape());
    for (std::int64_t i = 0; i < inputs[v].elements(); ++i) {
      double losses[2];
      for (const int side : {0, 1}) {
        std::vector<HostTensor> moved = inputs;
        moved[v] = HostTensor(DType::f64, inputs[v].shape());
        for (std::int64_t k = 0; k < inputs[v].elements(); ++k) moved[v].set(k, inputs[v].at(k));
        moved[v].set(i, inputs[v].at(i) + (side == 0 ? kStep : -kStep));
        losses[side] = evaluate(forward, moved)[0].at(0);
      }
      differences.set(i, (losses[0] - losses[1]) / (2 * kStep));
    }
  }
  return result;
}

double gradient_deviation(const HostTensor& found, const HostTensor& wanted) {
  OCLC_CHECK(found.shape() == wanted.shape(), "a gradient of another shape");
  double most = 0;
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    const double d = std::fabs(found.at(i) - wanted.at(i));
    most = d <= most ? most : d;
  }
  return most == 0 ? 0 : most / std::max(magnitude(wanted), 1e-6);
}

void GradientTable::add(const GradientCase& c, std::string_view column, double deviation) {
  if (std::find(columns_.begin(), columns_.end(), column) == columns_.end()) columns_.emplace_back(column);
  Row& row = rows_[std::string(c.op)];
  row.cases += &c == last_ ? 0 : 1;
  last_ = &c;
  const auto [worst, is_new] = row.worst.try_emplace(std::string(column), deviation);
  if (!is_new && deviation <= worst->second) return;
  worst->second = deviation;
  if (column == columns_.back()) row.shapes = c.text();
}

std::string GradientTable::text() const {
  std::string text = fmt::format("{:<18}{:>6}", "operator", "cases");
  for (const std::string& column : columns_) text += fmt::format("{:>18}", column);
  text += "  worst shapes\n";
  for (const auto& [op, row] : rows_) {
    text += fmt::format("{:<18}{:>6}", op, row.cases);
    for (const std::string& column : columns_) {
      const auto worst = row.worst.find(column);
      text += fmt::format("{:>18}", worst == row.worst.end() ? "" : fmt::format("{:.1e}", worst->second));
    }
    text += fmt::format("  {}\n", row.shapes);
  }
  return text;
}

}  // namespace oclc::test

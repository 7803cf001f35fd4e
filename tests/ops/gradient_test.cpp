// Every operator's gradient against finite differences of the reference in double, over awkward shapes.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <set>

#include "compiler/ops/gradients/autodiff.h"
#include "tests/ops/run_op.h"
#include "tests/support/gradient_cases.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("gradients of every operator are those of finite differences, in double and in single precision") {
  const std::vector<GradientCase> cases = gradient_cases();
  GradientTable table;
  for (const GradientCase& c : cases) {
    CAPTURE(c.op);
    CAPTURE(c.text());
    const GradientReference reference = reference_gradients(c);
    Graph graph;
    std::vector<HostTensor> operands = c.operands(), inputs;
    const DifferentiatedCase made = differentiate(graph, c, operands, DType::f32);
    for (Value* gradient : made.gradients) graph.add_output(fmt::format("d{}", graph.outputs().size()), gradient);
    for (const std::size_t i : made.variables) inputs.push_back(as_floats(operands[i], DType::f32));
    const std::vector<HostTensor> single = evaluate(graph, inputs);
    for (std::size_t v = 0; v < single.size(); ++v) {
      CAPTURE(v);
      const double in_double = gradient_deviation(reference.gradients[v], reference.differences[v]),
                   in_single = gradient_deviation(single[v], reference.gradients[v]);
      table.add(c, "fp64", in_double);
      table.add(c, "fp32", in_single);
      CHECK(in_double <= 1e-6);
      CHECK(in_single <= 1e-3);
    }
  }
  fmt::print("{}", table.text());
}

TEST_CASE("every operator through which a gradient flows has cases") {
  std::set<std::string_view> checked;
  for (const GradientCase& c : gradient_cases()) checked.insert(c.op);
  for (const OpDef* def : all_ops()) {
    CAPTURE(def->name);
    CHECK(is_differentiable(*def) == (checked.count(def->name) != 0));
  }
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
  const std::set<std::string_view> without = {"loop",  // it would need its intermediate values kept
                                              "read_dims", "bind_dims"};
  std::set<std::string_view> made_by_passes;
  for (const OpDef& def : lowering_ops()) made_by_passes.insert(def.name);
  for (const OpDef& def : winograd_gradient_ops()) made_by_passes.insert(def.name);
  for (const OpDef* def : all_ops()) {
    CAPTURE(def->name);
    const bool excused = without.count(def->name) != 0 || made_by_passes.count(def->name) != 0 ||
                         def->kind == OpKind::generator || def->kind == OpKind::host;
    CHECK((def->gradient != nullptr) != excused);
  }
}

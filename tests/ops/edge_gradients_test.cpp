// Gradients where derivatives are infinite or there are several, beside PyTorch's: one table. Those of PyTorch 2.13.0 on a CPU,
// of torch.autograd.grad with a gradient of ones.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "compiler/ops/gradients/autodiff.h"
#include "tests/ops/run_op.h"

using namespace oclc;

namespace edge_gradients_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

struct Edge {
  const char* what;
  std::vector<std::int64_t> shape;
  std::vector<double> x;
  Value* (*y)(Builder& b, Value* x);
  std::vector<double> pytorch;
  std::vector<double> ours{};  // where it is finite and PyTorch's is NaN
};

Value* number(Builder& b, double x) { return b.scalar(DType::f32, x); }
Value* positive(Builder& b, Value* x) { return b.call("greater", {x, number(b, 0)}); }
Value* rows(Builder& b, Value* x) { return b.reduce("reduce_sum", b.mul(x, x), {1}, false); }

const std::vector<Edge> kEdges = {
    {"sqrt", {2}, {0, 4}, [](Builder& b, Value* x) { return b.sqrt(x); }, {kInf, 0.25}},
    {"rsqrt", {2}, {0, 4}, [](Builder& b, Value* x) { return b.unary("rsqrt", x); }, {-kInf, -0.0625}},
    {"1 / x", {2}, {0, 2}, [](Builder& b, Value* x) { return b.unary("reciprocal", x); }, {-kInf, -0.25}},
    {"log", {3}, {0, -1, 2}, [](Builder& b, Value* x) { return b.unary("log", x); }, {kInf, -1, 0.5}},
    {"acos", {3}, {1, -1, 0}, [](Builder& b, Value* x) { return b.unary("acos", x); }, {-kInf, -kInf, -1}},
    {"asin", {3}, {1, -1, 0}, [](Builder& b, Value* x) { return b.unary("asin", x); }, {kInf, kInf, 1}},
    {"acosh", {2}, {1, 2}, [](Builder& b, Value* x) { return b.unary("acosh", x); }, {kInf, 1 / std::sqrt(3.0)}},
    {"atanh", {3}, {1, -1, 0}, [](Builder& b, Value* x) { return b.unary("atanh", x); }, {kInf, kInf, 1}},
    {"abs", {2}, {0, -2}, [](Builder& b, Value* x) { return b.unary("abs", x); }, {0, -1}},
    {"relu", {2}, {0, 1}, [](Builder& b, Value* x) { return b.relu(x); }, {0, 1}},
    {"x^0.5", {2}, {0, 4}, [](Builder& b, Value* x) { return b.pow(x, number(b, 0.5)); }, {kInf, 0.25}},
    {"x^1", {2}, {0, 4}, [](Builder& b, Value* x) { return b.pow(x, number(b, 1)); }, {1, 1}},
    {"x^2", {2}, {0, -3}, [](Builder& b, Value* x) { return b.pow(x, number(b, 2)); }, {0, -6}},
    {"x^3", {2}, {0, -3}, [](Builder& b, Value* x) { return b.pow(x, number(b, 3)); }, {0, 27}},
    {"x^-1", {2}, {0, 2}, [](Builder& b, Value* x) { return b.pow(x, number(b, -1)); }, {-kInf, -0.25}},
    {"x^1.5", {3}, {0, -1, 4}, [](Builder& b, Value* x) { return b.pow(x, number(b, 1.5)); }, {0, kNan, 3}},
    {"x^b, b as data",
     {5},
     {0, 0, 0, -1, 2},
     [](Builder& b, Value* x) {
       return b.pow(x, b.floats({0, 2, -1, 2, 0}, {5}));
     },
     {0, 0, -kInf, -2, 0}},
    {"a^x",
     {5},
     {0, 2, -1, 2, 0},
     [](Builder& b, Value* x) {
       return b.pow(b.floats({0, 0, 0, -1, 2}, {5}), x);
     },
     {0, 0, -kInf, kNan, std::log(2.0)}},
    {"x / b",
     {3},
     {0, 1, 1},
     [](Builder& b, Value* x) {
       return b.div(x, b.floats({0, 0, 2}, {3}));
     },
     {kInf, kInf, 0.5}},
    {"a / x",
     {3},
     {0, 0, 2},
     [](Builder& b, Value* x) {
       return b.div(b.floats({0, 1, 1}, {3}), x);
     },
     {kNan, -kInf, -0.25}},
    {"max",
     {2},
     {0, 1},
     [](Builder& b, Value* x) {
       return b.max(x, b.floats({0, 2}, {2}));
     },
     {0.5, 0}},
    {"min",
     {2},
     {0, 1},
     [](Builder& b, Value* x) {
       return b.min(x, b.floats({0, 2}, {2}));
     },
     {0.5, 1}},
    {"the largest of a row",
     {1, 3},
     {1, 1, 0},
     [](Builder& b, Value* x) { return b.reduce("reduce_max", x, {1}, false); },
     {0.5, 0.5, 0}},
    {"the product of a row",
     {2, 3},
     {0, 2, 3, 0, 0, 3},
     [](Builder& b, Value* x) { return b.reduce("reduce_prod", x, {1}, false); },
     {6, 0, 0, 0, 0, 0}},
    {"the norm of a row",
     {2, 2},
     {0, 0, 3, 4},
     [](Builder& b, Value* x) { return b.norm_root(rows(b, x), 2); },
     {0, 0, 0.6, 0.8}},
    {"the norm of a row, p = 3",
     {2, 2},
     {0, 0, 3, 4},
     [](Builder& b, Value* x) {
       return b.norm_root(b.reduce("reduce_sum", b.pow(b.unary("abs", x), number(b, 3)), {1}, false), 3);
     },
     {0, 0, 0.4448513388633728, 0.7908468246459961}},
    {"the root of a sum of squares",
     {2, 2},
     {0, 0, 3, 4},
     [](Builder& b, Value* x) { return b.sqrt(rows(b, x)); },
     {kNan, kNan, 0.6, 0.8}},
    {"x > 0 ? sqrt(x) : 0",
     {3},
     {0, -1, 4},
     [](Builder& b, Value* x) { return b.where(positive(b, x), b.sqrt(x), number(b, 0)); },
     {kNan, kNan, 0.25},
     {0, 0, 0.25}},
    {"x > 0 ? log(x) : 0",
     {3},
     {0, -1, 4},
     [](Builder& b, Value* x) { return b.where(positive(b, x), b.unary("log", x), number(b, 0)); },
     {kNan, 0, 0.25},
     {0, 0, 0.25}},
    {"x > 0 ? 1 / x : 0",
     {2},
     {0, 2},
     [](Builder& b, Value* x) { return b.where(positive(b, x), b.unary("reciprocal", x), number(b, 0)); },
     {kNan, -0.25},
     {0, -0.25}},
    {"x > 0 ? a / x : 0",
     {3},
     {0, 0, 2},
     [](Builder& b, Value* x) {
       return b.where(positive(b, x), b.div(b.floats({1, 0, 1}, {3}), x), number(b, 0));
     },
     {kNan, kNan, -0.25},
     {0, 0, -0.25}},
    {"x > 0 ? x^0.5 : 0",
     {3},
     {0, -1, 4},
     [](Builder& b, Value* x) { return b.where(positive(b, x), b.pow(x, number(b, 0.5)), number(b, 0)); },
     {kNan, kNan, 0.25},
     {0, 0, 0.25}},
    {"x < 0 ? e^x : x + 1",
     {2},
     {100, -0.5},
     [](Builder& b, Value* x) {
       return b.where(b.call("less", {x, number(b, 0)}), b.exp(x), b.add(x, 1));
     },
     {kNan, 0.6065306663513184},
     {1, 0.6065306663513184}},
    {"|x| < 1 ? acos(x) : 0",
     {2},
     {1, 0},
     [](Builder& b, Value* x) {
       return b.where(b.call("less", {b.unary("abs", x), number(b, 1)}), b.unary("acos", x), number(b, 0));
     },
     {kNan, -1},
     {0, -1}},
};

std::vector<double> gradient_of(const Edge& edge) {
  Graph graph;
  Builder b(graph, "node");
  Value* x = graph.add_input("x", {DType::f32, Shape(edge.shape.begin(), edge.shape.end())});
  Value* y = edge.y(b, x);
  Ints axes(y->type.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  Value* loss = b.reduce("reduce_sum", y, axes, false);
  graph.add_output("dx", add_gradients(graph, loss, std::vector<Value*>{x}).at(0));
  return values(evaluate(graph, std::vector<HostTensor>{floats(edge.shape, edge.x)}).at(0));
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::isinf(a) || std::isinf(b) ? a == b : std::fabs(a - b) <= 1e-6;
}

}  // namespace

TEST_CASE("gradients at edges are PyTorch's, or finite in a branch that is not taken") {
  for (const Edge& edge : kEdges) {
    const std::vector<double> found = gradient_of(edge), wanted = edge.ours.empty() ? edge.pytorch : edge.ours;
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      INFO(edge.what, " at ", edge.x[i], ": ", found[i], ", wanted ", wanted[i]);
      CHECK(same(found[i], wanted[i]));
    }
  }
}

TEST_CASE("what differs from PyTorch's gradients is finite where they are not") {
  for (const Edge& edge : kEdges) {
    for (std::size_t i = 0; i < edge.ours.size(); ++i) {
      CAPTURE(edge.what);
      CHECK(std::isfinite(edge.ours[i]));
      CHECK((same(edge.ours[i], edge.pytorch[i]) || !std::isfinite(edge.pytorch[i])));
    }
  }
}

}  // namespace edge_gradients_test

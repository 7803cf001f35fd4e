#include "compiler/ops/gradients/autodiff.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/ops/run_op.h"

using namespace oclc;

namespace {

Value* sum(Builder& b, Value* x) {
  Ints axes;
  for (std::size_t i = 0; i < x->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes.empty() ? x : b.reduce("reduce_sum", x, axes, false);
}

Value* gradient(Graph& graph, Value* loss, Value* x) { return add_gradients(graph, loss, std::vector<Value*>{x}).at(0); }

std::size_t count(const Graph& graph, std::string_view op) {
  std::size_t found = 0;
  for (const Node* node : graph.nodes()) found += node->op->name == op ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("gradients of several uses are summed") {
  Graph graph;
  Builder b(graph, "node");
  Value* x = graph.add_input("x", {DType::f32, {2}});
  Value* loss = sum(b, b.add(b.mul(x, x), b.add(b.mul(x, 3), b.mul(x, b.mul(x, x)))));
  graph.add_output("dx", gradient(graph, loss, x));
  CHECK(verify(graph) == "");
  CHECK(values(evaluate(graph, std::vector<HostTensor>{floats({2}, {1, 2})}).at(0)) == std::vector<double>{8, 19});
}

TEST_CASE("what the loss does not depend on has a gradient of zeros") {
  Graph graph;
  Builder b(graph);
  Value* x = graph.add_input("x", {DType::f32, {2, 3}});
  Value* y = graph.add_input("y", {DType::f32, {2}});
  b.mul(x, x);
  const std::vector<Value*> found = add_gradients(graph, sum(b, y), std::vector<Value*>{x, y});
  CHECK(found[0]->type == x->type);
  graph.add_output("dx", found[0]);
  graph.add_output("dy", found[1]);
  const auto results = evaluate(graph, std::vector<HostTensor>{counting({2, 3}), counting({2})});
  CHECK(values(results[0]) == std::vector<double>(6, 0));
  CHECK(values(results[1]) == std::vector<double>{1, 1});
}

TEST_CASE("the loss itself and intermediate values can be asked for") {
  Graph graph;
  Builder b(graph);
  Value* x = graph.add_input("x", {DType::f32, {}});
  Value* y = b.mul(x, x);
  Value* loss = b.mul(y, y);
  for (Value* value : add_gradients(graph, loss, std::vector<Value*>{loss, y, x})) graph.add_output("g", value);
  const auto results = evaluate(graph, std::vector<HostTensor>{HostTensor::scalar(DType::f32, 3)});
  CHECK(results[0].at(0) == 1);
  CHECK(results[1].at(0) == 18);
  CHECK(results[2].at(0) == 108);
}

TEST_CASE("gradients keep the names of the nodes") {
  Graph graph;
  Builder b(graph, "net");
  Value* x = graph.add_input("x", {DType::f32, {3}});
  b.set_source("layer.relu");
  Value* y = b.relu(x);
  b.set_source("loss");
  Value* loss = sum(b, y);
  const std::size_t before = graph.size();
  graph.add_output("dx", gradient(graph, loss, x));
  bool named = false;
  const std::vector<Node*> nodes = graph.nodes();
  for (std::size_t i = before; i < nodes.size(); ++i) named = named || nodes[i]->source == "layer.relu/grad";
  CHECK(named);
}

TEST_CASE("only what is needed is added") {
  Graph graph;
  Builder b(graph);
  Value* x = graph.add_input("x", {DType::f32, {2, 3}});
  Value* w = graph.add_input("w", {DType::f32, {3, 4}});
  Value* loss = sum(b, b.matmul(x, w));
  graph.add_output("dw", gradient(graph, loss, w));
  CHECK(count(graph, "matmul") == 2);
  const std::size_t size = graph.size();
  graph.add_output("loss", loss);
  graph.erase_dead();
  CHECK(graph.size() == size);
}

TEST_CASE("a weight shared by a batch has one product as gradient") {
  Graph graph;
  Builder b(graph);
  const Expr n = Expr::symbol("N"), t = Expr::symbol("T");
  Value* x = graph.add_input("x", {DType::f32, {n, t, 3}});
  Value* w = graph.add_input("w", {DType::f32, {3, 4}});
  Value* bias = graph.add_input("bias", {DType::f32, {4}});
  Value* dw = add_gradients(graph, sum(b, b.add(b.matmul(x, w), bias)), std::vector<Value*>{w, bias}).at(0);
  REQUIRE(dw->producer->op->name == "matmul");
  CHECK(dw->producer->inputs[0]->type.shape == Shape{n * t, 3});
  CHECK(dw->type == w->type);
}

TEST_CASE("symbolic sizes stay symbolic") {
  Graph graph;
  Builder b(graph);
  const Expr n = Expr::symbol("N");
  Value* x = graph.add_input("x", {DType::f32, {n, 4}});
  Value* y = b.slice(b.softmax(x), {0, 0}, {n, 2}, {1, 2});
  Value* loss = b.reduce("reduce_mean", b.mul(y, y), {0, 1}, false);
  graph.add_output("dx", gradient(graph, loss, x));
  CHECK(graph.outputs()[0].second->type == x->type);
  const HostTensor at = floats({1, 4}, {0.1, 0.2, 0.3, 0.4});
  const double h = 1e-3;
  const HostTensor dx = evaluate(graph, std::vector<HostTensor>{at}).at(0);
  const auto softmax_loss = [&](double first) {
    const double e[] = {std::exp(first), std::exp(0.2), std::exp(0.3), std::exp(0.4)};
    const double total = e[0] + e[1] + e[2] + e[3];
    return (e[0] * e[0] + e[2] * e[2]) / (total * total) / 2;
  };
  CHECK(dx.at(0) == doctest::Approx((softmax_loss(0.1 + h) - softmax_loss(0.1 - h)) / (2 * h)).epsilon(1e-4));
}

TEST_CASE("gradients of gradients of elementwise operators and products") {
  Graph graph;
  Builder b(graph);
  Value* x = graph.add_input("x", {DType::f64, {2, 2}});
  Value* y = b.tanh(b.matmul(x, b.exp(x)));
  Value* first = gradient(graph, sum(b, y), x);
  Value* penalty = sum(b, b.mul(first, first));
  Value* second = gradient(graph, penalty, x);
  graph.add_output("penalty", penalty);
  graph.add_output("second", second);
  CHECK(verify(graph) == "");
  const HostTensor at = floats({2, 2}, {0.1, -0.3, 0.2, 0.4}, DType::f64);
  const HostTensor found = evaluate(graph, std::vector<HostTensor>{at}).at(1);
  for (std::int64_t i = 0; i < 4; ++i) {
    double losses[2];
    for (int side = 0; side < 2; ++side) {
      HostTensor moved = floats({2, 2}, values(at), DType::f64);
      moved.set(i, at.at(i) + (side == 0 ? 1e-5 : -1e-5));
      losses[side] = evaluate(graph, std::vector<HostTensor>{moved}).at(0).at(0);
    }
    CHECK(found.at(i) == doctest::Approx((losses[0] - losses[1]) / 2e-5).epsilon(1e-6));
  }
}

TEST_CASE("case 112: all missing gradients are reported at once and the graph stays as it was") {
  Graph graph;
  Builder b(graph, "edges");
  Value* x = graph.add_input("x", {DType::f32, {4}});
  Value* y = b.pad(x, {1}, {1}, 0, "edge");
  b.set_source("mirror");
  y = b.pad(y, {1}, {1}, 0, "reflect");
  b.set_source("product");
  Value* loss = sum(b, b.mul(y, y));
  const std::size_t size = graph.size();
  const std::string message = error_of([&] { gradient(graph, loss, x); });
  CHECK(message.find("node 'edges' (pad)") != message.npos);
  CHECK(message.find("node 'mirror' (pad)") != message.npos);
  CHECK(message.find("product") == message.npos);
  CHECK(graph.size() == size);
  CHECK(verify(graph) == "");
}

TEST_CASE("what stands behind a step function is not missed") {
  Graph graph;
  Builder b(graph, "edges");
  Value* x = graph.add_input("x", {DType::f32, {4}});
  Value* loss = sum(b, b.unary("floor", b.pad(x, {1}, {1}, 0, "edge")));
  graph.add_output("dx", gradient(graph, loss, x));
  CHECK(values(evaluate(graph, std::vector<HostTensor>{counting({4})}).at(0)) == std::vector<double>(4, 0));
}

TEST_CASE("truth values and integers carry no gradient") {
  Graph graph;
  Builder b(graph);
  Value* x = graph.add_input("x", {DType::f32, {3}});
  Value* positive = b.call("greater", {x, b.scalar(DType::f32, 0)});
  Value* loss = sum(b, b.where(positive, b.mul(x, 2), b.cast(b.cast(x, DType::i32), DType::f32)));
  graph.add_output("dx", gradient(graph, loss, x));
  CHECK(values(evaluate(graph, std::vector<HostTensor>{floats({3}, {-1, 0, 2})}).at(0)) == std::vector<double>{0, 0, 2});
}

TEST_CASE("the gradients of slices that cut a value up are one concatenation") {
  Graph graph;
  Builder b(graph);
  const Expr n = Expr::symbol("N");
  Value* x = graph.add_input("x", {DType::f32, {n, 6}});
  Value *last = b.slice_axis(x, 1, 3, 3), *first = b.slice_axis(x, 1, 0, 2), *middle = b.slice_axis(x, 1, 2, 1);
  Value* loss = b.add(sum(b, b.mul(last, last)), b.add(sum(b, b.mul(first, 2)), b.add(sum(b, middle), sum(b, b.mul(x, 10)))));
  graph.add_output("dx", gradient(graph, loss, x));
  CHECK(count(graph, "concat") == 1);
  CHECK(count(graph, "pad") == 0);
  CHECK(values(evaluate(graph, std::vector<HostTensor>{counting({1, 6})}).at(0)) ==
        std::vector<double>{12, 12, 11, 18, 20, 22});
}

TEST_CASE("slices that overlap or leave gaps are added") {
  for (const std::int64_t start : {2, 4}) {
    Graph graph;
    Builder b(graph);
    Value* x = graph.add_input("x", {DType::f32, {6}});
    Value* loss = b.add(sum(b, b.slice_axis(x, 0, 0, 3)), sum(b, b.mul(b.slice_axis(x, 0, start, 6 - start), 2)));
    graph.add_output("dx", gradient(graph, loss, x));
    CHECK(count(graph, "concat") == 0);
    CHECK(values(evaluate(graph, std::vector<HostTensor>{counting({6})}).at(0)) ==
          (start == 2 ? std::vector<double>{1, 1, 3, 2, 2, 2} : std::vector<double>{1, 1, 1, 0, 2, 2}));
  }
}

TEST_CASE("a loss over classes adds up no zeros") {
  Graph graph;
  Builder b(graph);
  const Expr n = Expr::symbol("N");
  Value* x = graph.add_input("x", {DType::f64, {n, 5}});
  Value* labels = graph.add_input("labels", {DType::i64, {n, 1}});
  Value* loss = b.unary("neg", b.reduce("reduce_mean", b.gather_elements(b.log_softmax(x), labels, 1), {0, 1}, false));
  const std::size_t sums = count(graph, "reduce_sum");
  graph.add_output("dx", gradient(graph, loss, x));
  CHECK(count(graph, "reduce_sum") == sums);
  const HostTensor at = floats({2, 5}, {0, 1, 2, 3, 4, 1, 0, 1, 0, 1}, DType::f64);
  const HostTensor dx = evaluate(graph, std::vector<HostTensor>{at, ints({2, 1}, {4, -4})}).at(0);
  for (std::int64_t row = 0; row < 2; ++row) {
    double total = 0;
    for (std::int64_t k = 0; k < 5; ++k) total += std::exp(at.at(row * 5 + k));
    for (std::int64_t k = 0; k < 5; ++k) {
      const double wanted = (std::exp(at.at(row * 5 + k)) / total - (k == (row == 0 ? 4 : 1) ? 1 : 0)) / 2;
      CHECK(dx.at(row * 5 + k) == doctest::Approx(wanted).epsilon(1e-12));
    }
  }
}

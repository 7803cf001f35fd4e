#include "compiler/ops/reference/evaluate.h"

#include <doctest/doctest.h>

#include "tests/ops/run_op.h"

using namespace oclc;

TEST_CASE("a small network of several operators") {
  Graph graph;
  const Expr n = Expr::symbol("N");
  Builder b(graph);
  Value* x = graph.add_input("x", {DType::f32, {n, 2}});
  Value* h = b.relu(b.add(b.matmul(x, b.floats({1, -1, 1, 1}, {2, 2})), b.floats({0, 0.5f}, {2})));
  graph.add_output("h", h);
  graph.add_output("sum", b.reduce("reduce_sum", h, {-1}, false));
  const auto out = evaluate(graph, std::vector<HostTensor>{floats({2, 2}, {1, 2, -3, 1})});
  CHECK(values(out[0]) == std::vector<double>{3, 1.5, 0, 4.5});
  CHECK(values(out[1]) == std::vector<double>{4.5, 4.5});
}

TEST_CASE("an input may be an output, and a value may be two outputs") {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, {}});
  graph.add_output("a", x);
  graph.add_output("b", x);
  const auto out = evaluate(graph, std::vector<HostTensor>{floats({}, {4})});
  CHECK(out[0].at(0) == 4);
  CHECK(out[1].at(0) == 4);
}

TEST_CASE("an intermediate is freed after its last use") {
  static std::weak_ptr<std::vector<std::byte>> made;
  static bool made_is_alive_at_use, made_is_alive_afterwards;
  OpDef maker = op("neg"), user = op("neg"), probe = op("neg");
  maker.eval = [](const Node&, std::span<const HostTensor>, const SymbolValues&) {
    auto bytes = std::make_shared<std::vector<std::byte>>(8);
    made = bytes;
    return std::vector<HostTensor>{HostTensor(DType::f32, {2}, bytes->data(), bytes)};
  };
  user.eval = [](const Node&, std::span<const HostTensor>, const SymbolValues&) {
    made_is_alive_at_use = !made.expired();
    return std::vector<HostTensor>{HostTensor(DType::f32, {2})};
  };
  probe.eval = [](const Node&, std::span<const HostTensor> inputs, const SymbolValues&) {
    made_is_alive_afterwards = !made.expired();
    return std::vector<HostTensor>{inputs[0]};
  };
  Graph graph;
  Value* v = graph.add_input("x", {DType::f32, {2}});
  for (const OpDef* def : {&maker, &user, &probe}) v = graph.add(*def, {v})->output();
  graph.add_output("y", v);
  evaluate(graph, std::vector<HostTensor>{counting({2})});
  CHECK(made_is_alive_at_use);
  CHECK_FALSE(made_is_alive_afterwards);
}

TEST_CASE("inputs are checked against their types") {
  Graph graph;
  const Expr n = Expr::symbol("N");
  Value* a = graph.add_input("a", {DType::f32, {n, 2}});
  Value* c = graph.add_input("c", {DType::f32, {n * Expr(2)}});
  graph.add_output("a", a);
  graph.add_output("c", c);
  const auto error = [&](std::vector<HostTensor> inputs) { return error_of([&] { evaluate(graph, inputs); }); };
  CHECK(error({counting({3, 2}), counting({6})}) == "no error");
  CHECK(error({counting({3, 2})}) == "wanted 2 inputs, found 1");
  CHECK(error({counting({3, 2}, DType::i32), counting({6})}) == "node 'a' (input): wanted f32[N, 2], found i32[3, 2]");
  CHECK(error({counting({6}), counting({6})}) == "node 'a' (input): wanted f32[N, 2], found f32[6]");
  CHECK(error({counting({3, 3}), counting({6})}) == "node 'a' (input): wanted shape [3, 2], found f32[3, 3]");
  CHECK(error({counting({3, 2}), counting({5})}) == "node 'c' (input): wanted shape [6], found f32[5]");
  CHECK(error_of([&] {
          evaluate(graph, std::vector<HostTensor>{counting({3, 2}), counting({6})}, {{"N", 4}});
        }) == "node 'a' (input): wanted f32[N, 2] with N = 4, found f32[3, 2]");
}

namespace {

// state = state * factor + x[counter]; each trip also gives its state.
std::unique_ptr<Graph> accumulate_body(const Expr& t) {
  auto body = std::make_unique<Graph>();
  Value* state = body->add_input("state", {DType::f32, {}});
  Value* x = body->add_input("x", {DType::f32, {t}});
  Value* factor = body->add_input("factor", {DType::f32, {}});
  Builder b(*body);
  Value* element = b.reshape(b.slice_axis(x, 0, Expr::symbol("i", 0), 1), {});
  Value* next = b.fma(state, factor, element);
  body->add_output("state", next);
  body->add_output("trace", next);
  return body;
}

}  // namespace

TEST_CASE("a loop carries values and stacks results") {
  Graph graph;
  const Expr t = Expr::symbol("T");
  Value* start = graph.add_input("start", {DType::f32, {}});
  Value* x = graph.add_input("x", {DType::f32, {t}});
  Builder b(graph, "rnn");
  Value* factor = b.scalar(DType::f32, 2);
  const Node* loop = b.loop(t, "i", {start}, {x, factor}, accumulate_body(t));
  graph.add_output("last", loop->output(0));
  graph.add_output("trace", loop->output(1));
  CHECK(loop->output(1)->type.text() == "f32[T]");
  CHECK(loop->op->cost(*loop).flops == t * Expr(2));
  const auto out = evaluate(graph, std::vector<HostTensor>{floats({}, {1}), floats({3}, {10, 20, 30})});
  CHECK(out[0].at(0) == 118);
  CHECK(values(out[1]) == std::vector<double>{12, 44, 118});
}

TEST_CASE("a loop of no trips gives the initial values") {
  Graph graph;
  Value* start = graph.add_input("start", {DType::f32, {}});
  Value* x = graph.add_input("x", {DType::f32, {2}});
  Builder b(graph, "rnn");
  const Node* loop = b.loop(0, "i", {start}, {x, b.scalar(DType::f32, 2)}, accumulate_body(2));
  graph.add_output("last", loop->output(0));
  graph.add_output("trace", loop->output(1));
  const auto out = evaluate(graph, std::vector<HostTensor>{floats({}, {1}), floats({2}, {10, 20})});
  CHECK(out[0].at(0) == 1);
  CHECK(out[1].shape() == Ints{0});
}

TEST_CASE("loops that do not fit are refused") {
  Graph graph;
  Value* start = graph.add_input("start", {DType::f32, {}});
  Value* x = graph.add_input("x", {DType::f32, {2}});
  Builder b(graph, "rnn");
  CHECK(error_of([&] { b.loop(2, "i", {start}, {x}, accumulate_body(2)); }) ==
        "node 'rnn' (loop): wanted 3 operands, as the body takes, found 2");
  CHECK(error_of([&] {
          b.loop(2, "i", {start}, {x, start}, accumulate_body(3));
        }) == "node 'rnn' (loop): wanted operand 1 of type f32[3], as the body takes, found f32[2]");
  CHECK(error_of([&] {
          b.loop(-1, "i", {start}, {x, start}, accumulate_body(2));
        }) == "node 'rnn' (loop): wanted a trip count of 0 or more, found -1");
  CHECK(error_of([&] {
          b.loop(2, "i", {start, x}, {start}, accumulate_body(2));
        }) == "node 'rnn' (loop): wanted carried value 1 of unchanging type f32[2], found f32[]");
}

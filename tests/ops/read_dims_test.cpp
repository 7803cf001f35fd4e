#include "compiler/ops/read_dims.h"

#include <doctest/doctest.h>

#include "compiler/ir/text.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

HostTensor numbers(const Ints& values) {
  HostTensor tensor(DType::i64, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

HostTensor floats(const std::vector<double>& values) {
  HostTensor tensor(DType::f32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

// The first k[0] elements of x, with 10 added, and as many of y; x reversed does not depend on k.
std::unique_ptr<Graph> first_elements() {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input("x", {DType::f32, {Expr::symbol("N")}});
  Value* y = graph->add_input("y", {DType::f32, {Expr::symbol("N")}});
  Value* k = graph->add_input("k", {DType::i64, {Expr(1)}});
  Builder b(*graph, "node");
  const Expr n = b.read_dims(k, "first", {Expr::symbol("N")}).at(0);
  graph->add_output("a", b.add(b.slice(x, {Expr(0)}, {n}, {1}), 10));
  graph->add_output("b", b.add(b.slice(y, {Expr(0)}, {n}, {1}), b.slice(x, {Expr(0)}, {n}, {1})));
  graph->add_output("c", b.unary("neg", x));
  return graph;
}

TEST_CASE("what depends on a read dimension becomes the body of bind_dims, the rest stays") {
  const auto graph = first_elements();
  nest_read_dims(*graph);
  CHECK(verify(*graph) == "");
  const std::string text = print_graph(*graph);
  CAPTURE(text);
  CHECK(text.find("read_dims") == std::string::npos);
  CHECK(text.find("bind_dims(%k, %x, %y)") != std::string::npos);
  REQUIRE(graph->nodes().size() == 2);
  CHECK(graph->outputs()[2].second->producer->op->name == "neg");
}

TEST_CASE("the reference binds what it reads, and refuses more than the upper bound") {
  const auto graph = first_elements();
  nest_read_dims(*graph);
  const std::vector<HostTensor> inputs = {floats({1, 2, 3}), floats({5, 6, 7}), numbers({2})};
  const auto results = evaluate(*graph, inputs, {});
  CHECK(results[0].shape() == std::vector<std::int64_t>{2});
  CHECK(results[0].at(1) == 12);
  CHECK(results[1].at(1) == 8);
  CHECK(results[2].shape() == std::vector<std::int64_t>{3});
  const std::vector<HostTensor> none = {floats({1, 2, 3}), floats({5, 6, 7}), numbers({0})};
  CHECK(evaluate(*graph, none, {})[0].elements() == 0);
  const std::vector<HostTensor> many = {floats({1, 2, 3}), floats({5, 6, 7}), numbers({4})};
  CHECK_THROWS_WITH_AS(evaluate(*graph, many, {}), doctest::Contains("<= N, found 4"), CompileError);
}

TEST_CASE("reads of reads nest, and what needs two reads stands in both bodies") {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, {Expr(8)}});
  Value* k = graph.add_input("k", {DType::i64, {Expr(2)}});
  Builder b(graph, "node");
  const Expr n = b.read_dims(b.slice_axis(k, 0, 0, 1), "n", {Expr(8)}).at(0);
  const Expr m = b.read_dims(b.slice_axis(k, 0, 1, 1), "m", {Expr(8)}).at(0);
  Value* both = b.add(b.reshape(b.slice(x, {Expr(0)}, {n}, {1}), {n, Expr(1)}), b.slice(x, {Expr(0)}, {m}, {1}));
  graph.add_output("y", b.reduce("reduce_sum", both, {0}, false));
  nest_read_dims(graph);
  CHECK(verify(graph) == "");
  const std::vector<HostTensor> inputs = {floats({1, 2, 3, 4, 5, 6, 7, 8}), numbers({2, 3})};
  const auto y = evaluate(graph, inputs, {}).at(0);
  REQUIRE(y.shape() == std::vector<std::int64_t>{3});
  CHECK(y.at(2) == 1 + 2 + 2 * 3);
}

}  // namespace
}  // namespace oclc

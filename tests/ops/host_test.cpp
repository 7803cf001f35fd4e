#include "compiler/ops/host_op.h"

#include <doctest/doctest.h>

#include "compiler/ir/parse.h"
#include "compiler/ir/strings.h"
#include "compiler/ir/text.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

HostTensor texts(const std::vector<std::string>& values) {
  return HostTensor::from_texts(values, {static_cast<std::int64_t>(values.size())});
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("equal strings have equal numbers, the empty one has 0") {
  CHECK(string_number("") == 0);
  CHECK(string_number("host_test a") == string_number(std::string("host_test ") + "a"));
  CHECK(string_number("host_test a") != string_number("host_test b"));
  CHECK(string_text(string_number("host_test b")) == "host_test b");
  CHECK_THROWS_AS(string_text(INT32_MAX), InternalError);
  CHECK(HostTensor(DType::string, {2}).text_at(1) == "");
}

TEST_CASE("graphs with strings have a text that reads back") {
  Graph graph;
  Value* x = graph.add_input("x", {DType::string, {Expr::symbol("N")}});
  Builder b(graph, "node");
  Value* quotes = b.constant(texts({"a", "\"quoted\", \\ and, commas\n", ""}));
  Value* same = b.constant(texts({"x", "x"}));
  Value* scalar = b.constant(HostTensor::from_texts(std::vector<std::string>{"one"}, {}));
  graph.add_output("a", b.concat({x, quotes, same}, 0));
  graph.add_output("b", b.call("equal", {x, scalar}));
  graph.add_output(
      "c", b.call("string_split", {x},
                  {{"most", std::int64_t{3}}, {"delimiter", std::vector<std::string>{","}}, {"parts", std::int64_t{4}}}));
  const std::string text = print_graph(graph);
  CAPTURE(text);
  const auto again = parse_graph(text, [](std::string_view name) { return find_op(name); });
  CHECK(print_graph(*again) == text);
  const std::vector<HostTensor> inputs = {texts({"one", "a,b"})};
  const auto wanted = evaluate(graph, inputs), found = evaluate(*again, inputs);
  for (std::int64_t i = 0; i < wanted[0].elements(); ++i) CHECK(found[0].text_at(i) == wanted[0].text_at(i));
  CHECK(found[0].text_at(3) == "\"quoted\", \\ and, commas\n");
  CHECK(found[1].int_at(0) == 1);
  CHECK(found[1].int_at(1) == 0);
  CHECK(found[2].text_at(5) == "b");
}

TEST_CASE("core operators on numbers refuse strings") {
  Graph graph;
  Value* s = graph.add_input("s", {DType::string, {Expr(4), Expr(4)}});
  Value* x = graph.add_input("x", {DType::f32, {Expr(4), Expr(4)}});
  Builder b(graph, "node");
  const std::string numbers = "wanted numbers, found string[4, 4]";
  CHECK(error_of([&] { b.reduce("reduce_max", s, {0}, true); }).find(numbers) != std::string::npos);
  CHECK(error_of([&] { b.softmax(s); }).find(numbers) != std::string::npos);
  CHECK(error_of([&] { b.cumsum(s, 0); }).find(numbers) != std::string::npos);
  CHECK(error_of([&] { b.matmul(s, s); }).find(numbers) != std::string::npos);
  CHECK(error_of([&] { b.call("cast", {s}, {{"dtype", DType::f32}}); }).find(numbers) != std::string::npos);
  CHECK(error_of([&] { b.call("cast", {x}, {{"dtype", DType::string}}); }).find("wanted numbers") != std::string::npos);
  CHECK(error_of([&] { b.add(s, s); }).find("string[4, 4]") != std::string::npos);
  CHECK(error_of([&] { b.call("less", {s, s}); }).find("string[4, 4]") != std::string::npos);
  CHECK(error_of([&] { b.call("and", {s, s}); }).find("string[4, 4]") != std::string::npos);
  CHECK(error_of([&] { b.call("equal", {s, x}); }).find("operands of one element type") != std::string::npos);
  CHECK(error_of([&] {
          b.call("string_to_number", {x}, {{"dtype", DType::f32}});
        }).find("wanted strings, found f32[4, 4]") != std::string::npos);
  CHECK(error_of([&] { b.call("number_to_string", {s}); }).find(numbers) != std::string::npos);
}

TEST_CASE("casts of the builder go through texts") {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, {Expr(2)}});
  Builder b(graph, "node");
  Value* text = b.cast(x, DType::string);
  CHECK(b.cast(text, DType::string) == text);
  graph.add_output("text", text);
  graph.add_output("back", b.cast(text, DType::f64));
  HostTensor given(DType::f32, {2});
  given.set(0, 0.5);
  given.set(1, 1e20);
  const std::vector<HostTensor> inputs = {given};
  const auto found = evaluate(graph, inputs);
  CHECK(found[0].text_at(0) == "0.5");
  CHECK(found[0].text_at(1) == "1e+20");
  CHECK(found[1].at(1) == 1e20);
  Graph wrong;
  Builder c(wrong, "number");
  wrong.add_output("y", c.cast(c.constant(texts({"one"})), DType::f32));
  CHECK(error_of([&] { evaluate(wrong, {}); }).find("wanted a number as element 0, found \"one\"") != std::string::npos);
}

}  // namespace
}  // namespace oclc

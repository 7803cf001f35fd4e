#include "compiler/ir/text.h"

#include <doctest/doctest.h>

#include <limits>

#include "compiler/ir/copy.h"
#include "compiler/ir/dot.h"
#include "compiler/ir/parse.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"

using namespace oclc;

namespace {

std::string again(std::string_view text) { return print_graph(*parse_graph(text, find_op)); }

std::string parse_error(std::string_view text) {
  try {
    parse_graph(text, find_op);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

constexpr std::string_view kSmall = R"(symbol N
graph predict(%x: f32[N, 3, 8, 8]) {
  %w = constant f32[4, 3, 1, 1] [1, 2, 3, 0.5, -0, 0.1, inf, nan, 1e-07, 10, 11, 12]
  %0 = constant f32[4] splat 0.25
  %1 = conv(%x, %w, %0) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[2, 2]} : f32[N, 4, 4, 4]  // conv1
  %2 = reshape(%1) {shape=(N, 64)} : f32[N, 64]  // flatten of "x"
  return y=%2, "second output"=%1
}
)";

}  // namespace

TEST_CASE("text is stable under parse and print") { CHECK(again(kSmall) == kSmall); }

TEST_CASE("symbols keep their bounds") {
  const std::string text = R"(symbol N in [2, 512]
symbol P >= 0
graph g(%x: f32[N, P + 1]) {
  return y=%x
}
)";
  const auto graph = parse_graph(text, find_op);
  CHECK(graph->inputs()[0]->type.shape[0].lower() == 2);
  CHECK(graph->inputs()[0]->type.shape[0].upper() == 512);
  CHECK(graph->inputs()[0]->type.shape[1].lower() == 1);
  CHECK(print_graph(*graph) == text);
}

TEST_CASE("names that are no plain names are quoted") {
  const std::string text = R"(graph "a b"(%0 "1st": i32[], %onnx::x/y.1: i64[2], %1 "p//q": f32[0]) {
  %2 "my \"weight\"\n" = constant f32[1] [3]
  return "o=1"=%2
}
)";
  CHECK(again(text) == text);
  CHECK(parse_graph(text, find_op)->nodes()[0]->output()->name == "my \"weight\"\n");
}

TEST_CASE("every element type prints values that read back") {
  for (const char* tensor :
       {"f64[2] [0.1, -inf]", "f16[2] [0.5, 65504]", "bf16[1] [3.140625]", "i8[2] [-128, 127]", "i16[1] [-5]", "i32[1] [7]",
        "i64[2] [-9223372036854775808, 9223372036854775807]", "u8[1] [255]", "u16[1] [65535]", "u32[1] [4294967295]",
        "u64[1] [18446744073709551615]", "bool[2] [true, false]", "f32[] 0.1", "f32[2, 0] []", "f32[1000, 1000] splat -0"}) {
    const std::string text = "graph g() {\n  %0 = constant " + std::string(tensor) + "\n  return y=%0\n}\n";
    CHECK(again(text) == text);
  }
}

TEST_CASE("attributes of every type read back as that type") {
  Node node;
  node.attributes = {{"a", std::int64_t{-3}},
                     {"b", 2.0},
                     {"c", std::string("it's \"1\"\\")},
                     {"d", Ints{}},
                     {"e", std::vector<double>{}},
                     {"f", std::vector<std::string>{}},
                     {"g", std::vector<Expr>{Expr::symbol("N") * Expr(2), min(Expr::symbol("N"), Expr(4))}},
                     {"h", DType::bf16},
                     {"i", std::vector<double>{1.0, -std::numeric_limits<double>::infinity()}},
                     {"j", std::vector<std::string>{"x", ","}},
                     {"k", HostTensor::from_ints(Ints{1, 2})}};
  OpDef any;
  any.name = "any";
  any.infer = [](const Node&) { return std::vector<TensorType>{{DType::f32, {}}}; };
  Graph graph;
  graph.add_output("y", graph.add(any, {}, node.attributes)->output());
  const std::string text = print_graph(graph);
  const auto back = parse_graph(text, [&](std::string_view name) { return name == "any" ? &any : nullptr; });
  CHECK(print_graph(*back) == text);
  for (const auto& attribute : node.attributes) {
    CAPTURE(attribute.first);
    CHECK(back->nodes()[0]->attributes.at(attribute.first).index() == attribute.second.index());
  }
}

TEST_CASE("layouts print after types") {
  auto graph = parse_graph(
      "graph g(%x: f32[1, 2, 3, 4] @[0, 2, 3, 1]) {\n %0 = relu(%x) : f32[1, 2, 3, 4] @[0, 2, 3, 1]\n return y=%0\n}", find_op);
  CHECK(graph->inputs()[0]->layout.order == std::vector<int>{0, 2, 3, 1});
  CHECK(graph->nodes()[0]->output()->layout.order == std::vector<int>{0, 2, 3, 1});
  CHECK(again(print_graph(*graph)) == print_graph(*graph));
  CHECK(verify(*graph) == "");
  graph->inputs()[0]->layout.order = {0, 1, 1, 2};
  CHECK(verify(*graph).find("layout of value 0") != std::string::npos);
}

TEST_CASE("loops print their bodies") {
  const std::string text = R"(symbol T
axis t < T
graph g(%x: f32[T, 4], %h: f32[4]) {
  %0, %1 = loop(%h, %x) {carried=1, counter="t", trip=(T)} : f32[4], f32[T, 4]  // LSTM
    body step(%h: f32[4], %x: f32[T, 4]) {
      %0 = slice(%x) {sizes=(1, 4), starts=(t, 0), steps=[1, 1]} : f32[1, 4]
      %1 = reshape(%0) {shape=(4)} : f32[4]
      %2 = add(%h, %1) : f32[4]
      return next=%2, result=%2
    }
  return last=%0, all=%1
}
)";
  CHECK(again(text) == text);
  const auto graph = parse_graph(text, find_op);
  CHECK(verify(*graph) == "");
  CHECK(print_graph(*copy_graph(*graph)) == text);
}

TEST_CASE("long constants print as a hash which cannot be read") {
  const auto graph = parse_graph("graph g() {\n  %w = constant f32[40] random 1\n  return y=%w\n}\n", find_op);
  const std::string text = print_graph(*graph);
  CHECK(text.find("%w = constant f32[40] xxh3:") != std::string::npos);
  CHECK(parse_error(text) == "line 2: wanted a tensor's values, found its hash alone");
  CHECK(again(print_graph(*graph, {.max_elements = 40})) == text);
}

TEST_CASE("parse errors name the line") {
  CHECK(parse_error("graph g(%x: f32[2]) {\n  %0 = frobnicate(%x)\n  return y=%0\n}") ==
        "line 2: wanted an operator, found 'frobnicate'");
  CHECK(parse_error("graph g(%x: f32[2]) {\n  %0 = relu(%y)\n  return y=%0\n}") ==
        "line 2: wanted a value defined before, found %y");
  CHECK(parse_error("graph g(%x: f32[2]) {\n  %0 = relu(%x) : f32[3]\n  return y=%0\n}") ==
        "line 2: wanted f32[2], found f32[3]");
  CHECK(parse_error("graph g(%x: f33[2]) {") == "line 1: wanted an element type, found 'f33'");
  CHECK(parse_error("graph g(%x: f32[2]) {\n  %x = relu(%x)\n") == "line 2: wanted a new value, found a second %x");
  CHECK(parse_error("graph g(%x: f32[2]) {\n  %0 = relu(%x) nonsense\n") ==
        "line 2: wanted the end of the line, found 'nonsense'");
  CHECK(parse_error("graph g() {\n\n  %0 = constant f32[2] [1]\n") == "line 3: wanted 2 elements, found 1");
  CHECK(parse_error("graph g() {\n  %0 = constant i8[1] [1.5]\n") == "line 2: wanted an element of type i8, found '1.5'");
  CHECK(parse_error("graph g(%x: f32[2]) {\n") == "line 2: wanted '%', found the end of the text");
  CHECK(parse_error("graph g(%x: f32[2]) {\n  %0 = reshape(%x) {shape=(2}\n") ==
        "line 2: wanted ')', found the end of the line");
  CHECK(parse_error("graph g(%x: f32[2]) {\n  %0, %1 = relu(%x)\n  return y=%0\n}").find("line 2") == 0);
  CHECK(parse_error("graph g(%x: f32[2], %y: f32[3]) {\n  %0 = add(%x, %y)\n  return y=%0\n}").find("line 2: (add): wanted") ==
        0);
}

TEST_CASE("modules hold states and entries") {
  const std::string text = R"(module "net"
symbol N
state "w" : f32[2] = f32[2] [1, 2]
state "steps" : i64[]
graph predict(%x: f32[N, 2]) {
  return y=%x
}
graph init() {
  return
}
)";
  const Module module = parse_module(text, find_op);
  CHECK(module.entries.size() == 2);
  CHECK(module.symbols.size() == 1);
  CHECK(print_module(module) == text);
}

TEST_CASE("verify finds a stale type, a wrong order and a wrong use list") {
  const auto fresh = [] {
    return parse_graph("graph g(%x: f32[2]) {\n %0 = relu(%x)\n %1 = neg(%0)\n return y=%1\n}", find_op);
  };
  auto graph = fresh();
  CHECK(verify(*graph) == "");
  graph->nodes()[0]->output()->type.dtype = DType::f16;
  CHECK(verify(*graph) == "node 0 (relu): output 0 has type f16[2] instead of f32[2]");
  graph = fresh();
  graph->nodes()[0]->inputs[0] = graph->nodes()[1]->output();
  CHECK(verify(*graph) == "node 0 (relu) uses value 2 before it is made, or from another graph");
  graph = fresh();
  graph->inputs()[0]->users.clear();
  CHECK(verify(*graph) == "the use list of value 0 is out of date");
}

TEST_CASE("copies share nothing but tensors' bytes") {
  const auto graph = parse_graph(kSmall, find_op);
  const auto copy = copy_graph(*graph);
  CHECK(verify(*copy) == "");
  copy->nodes()[0]->output()->name = "other";
  CHECK(print_graph(*graph) == kSmall);
  CHECK(constant_of(copy->nodes()[0]->output())->data() == constant_of(graph->nodes()[0]->output())->data());
}

TEST_CASE("dot escapes names") {
  const auto graph = parse_graph(
      "graph \"a\\\"b\"(%0 \"in\\\"put\": f32[2]) {\n %1 = relu(%0)  // node \\\"1\\\"\n return \"o\\\\\"=%1\n}", find_op);
  const std::string dot = print_dot(*graph);
  CHECK(dot.find("digraph \"a\\\"b\"") == 0);
  CHECK(dot.find("in\\\"put\\l") != std::string::npos);
  CHECK(dot.find("node \\\"1\\\"\\l") != std::string::npos);
  CHECK(dot.find("o\\\\\\l") != std::string::npos);
}

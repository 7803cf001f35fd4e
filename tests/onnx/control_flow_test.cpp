// Loop, Scan, sequences and optionals.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::control_flow_test {

using oclc_onnx::TensorProto;
using test::GraphProto;
using test::NodeProto;
using test::Writer;

HostTensor ramp(std::vector<std::int64_t> shape) {
  HostTensor t(DType::f32, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, static_cast<double>(i));
  return t;
}

GraphProto& body_of(NodeProto& node) { return *test::attribute(node, "body", test::AttributeProto::GRAPH).mutable_g(); }

NodeProto& add(GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
  NodeProto& node = *graph.add_node();
  Writer::fill(node, op, inputs, outputs);
  return node;
}

void takes(GraphProto& graph, const std::string& name, const std::vector<test::Dim>& shape, int type = TensorProto::FLOAT) {
  test::set_type(*graph.add_input(), name, shape, type);
}

void gives(GraphProto& graph, const std::vector<std::string>& names) {
  for (const auto& name : names) graph.add_output()->set_name(name);
}

// A model with a loop whose body takes `at` and `go` and carries values of that name.
GraphProto& loop(Writer& w, const std::vector<std::string>& carried, const std::vector<std::string>& outputs,
                 std::int64_t trips) {
  w.ints("trips", {}, {trips});
  std::vector<std::string> inputs{"trips", ""};
  for (const auto& name : carried) inputs.push_back(name + "0");
  GraphProto& body = body_of(w.node("Loop", inputs, outputs, "repeat"));
  takes(body, "at", {}, TensorProto::INT64);
  takes(body, "go", {}, TensorProto::BOOL);
  for (const auto& name : carried) body.add_input()->set_name(name);
  return body;
}

std::vector<HostTensor> run(const Writer& w, const std::vector<HostTensor>& inputs, const ImportOptions& options = {}) {
  const auto module = w.import(options);
  REQUIRE(verify(*module->entries[0]) == "");
  return evaluate(*module->entries[0], inputs);
}

int count(const Graph& graph, std::string_view op) {
  const auto nodes = graph.nodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [&](const Node* n) { return n->op->name == op; }));
}

std::string failure(const Writer& w, const ImportOptions& options = {}) {
  try {
    w.import(options);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "none";
}

// s' = s + x * at, gives s' of all trips.
Writer sums(std::int64_t trips) {
  Writer w;
  w.input("s0", {3}).input("x", {3}).output("s").output("all");
  GraphProto& body = loop(w, {"s"}, {"s", "all"}, trips);
  test::set_int(add(body, "Cast", {"at"}, {"number"}), "to", TensorProto::FLOAT);
  add(body, "Mul", {"x", "number"}, {"term"});
  add(body, "Add", {"s", "term"}, {"next"});
  add(body, "Identity", {"next"}, {"result"});
  gives(body, {"go", "next", "result"});
  return w;
}

void check_sums(const std::vector<HostTensor>& found, std::int64_t trips) {
  REQUIRE(found.size() == 2);
  CHECK(found[1].shape() == std::vector<std::int64_t>{trips, 3});
  for (std::int64_t i = 0; i < 3; ++i) {
    double sum = static_cast<double>(i);
    for (std::int64_t t = 0; t < trips; ++t) {
      sum += static_cast<double>(i * t);
      CHECK(found[1].at(t * 3 + i) == sum);
    }
    CHECK(found[0].at(i) == sum);
  }
}

TEST_CASE("many trips are a loop that captures values of the graph around it") {
  const Writer w = sums(100);
  CHECK(count(*w.import()->entries[0], "loop") == 1);
  check_sums(run(w, {ramp({3}), ramp({3})}), 100);
}

TEST_CASE("few trips are unrolled") {
  const Writer w = sums(3);
  CHECK(count(*w.import()->entries[0], "loop") == 0);
  check_sums(run(w, {ramp({3}), ramp({3})}), 3);
}

TEST_CASE("a loop that never runs gives its initial values and results without elements") {
  check_sums(run(sums(0), {ramp({3}), ramp({3})}), 0);
}

TEST_CASE("a condition that the number of the trip decides ends a loop") {
  Writer w;
  w.input("s0", {2}).output("s").output("all");
  w.ints("three", {}, {3});
  GraphProto& body = loop(w, {"s"}, {"s", "all"}, 1'000'000);
  add(body, "Less", {"at", "three"}, {"goes_on"});
  add(body, "Add", {"s", "s"}, {"next"});
  add(body, "Identity", {"next"}, {"result"});
  gives(body, {"goes_on", "next", "result"});
  const auto found = run(w, {ramp({2})});
  CHECK(found[0].at(1) == 16);
  CHECK(found[1].shape() == std::vector<std::int64_t>{4, 2});
}

TEST_CASE("a carried value that only grows is put together behind the loop") {
  Writer w;
  w.input("s0", {2, 3}).input("x", {2, 1}).output("s");
  GraphProto& body = loop(w, {"s"}, {"s"}, 70);
  test::set_int(add(body, "Cast", {"at"}, {"number"}), "to", TensorProto::FLOAT);
  add(body, "Mul", {"x", "number"}, {"term"});
  test::set_int(add(body, "Concat", {"s", "term", "x"}, {"next"}), "axis", -1);
  gives(body, {"go", "next"});
  CHECK(count(*w.import()->entries[0], "loop") == 1);
  const std::vector<HostTensor> inputs{ramp({2, 3}), ramp({2, 1})};
  const HostTensor s = run(w, inputs)[0];
  REQUIRE(s.shape() == std::vector<std::int64_t>{2, 143});
  for (std::int64_t i = 0; i < s.elements(); ++i) {
    const std::int64_t row = i / 143, column = i % 143 - 3;
    CHECK(s.at(i) == (column < 0 ? row * 3 + column + 3 : column % 2 == 0 ? row * (column / 2) : row));
  }
  CHECK(test::compare_with_reference(*w.import()->entries[0], inputs).max_abs == 0);
}

TEST_CASE("a carried value that grows and is read is read once for each trip") {
  Writer w;
  w.input("s0", {1, 2}).output("s");
  GraphProto& body = loop(w, {"s"}, {"s"}, 70);
  test::set_list(add(body, "ReduceMax", {"s"}, {"largest"}), "axes", {0});
  test::set_int(add(body, "Concat", {"s", "largest"}, {"next"}), "axis", 0);
  gives(body, {"go", "next"});
  CHECK(run(w, {ramp({1, 2})})[0].shape() == std::vector<std::int64_t>{71, 2});
}

// Follows a table from a word on, until the last word or eight more of them; gives all words.
Writer followed(bool known_limit) {
  Writer w;
  w.input("first", {1}, TensorProto::INT64).output("words");
  w.ints("table", {7}, {3, 2, 5, 1, 4, 0, 6}).ints("end", {1}, {0}).ints("axis", {1}, {0});
  if (known_limit)
    w.ints("most", {}, {8});
  else
    w.input("most", {}, TensorProto::INT64);
  GraphProto& body = body_of(w.node("Loop", {"most", "", "first", "first"}, {"last", "words"}, "follow"));
  takes(body, "at", {}, TensorProto::INT64);
  takes(body, "go", {}, TensorProto::BOOL);
  body.add_input()->set_name("word");
  body.add_input()->set_name("all");
  add(body, "Gather", {"table", "word"}, {"next"});
  test::set_int(add(body, "Concat", {"all", "next"}, {"more"}), "axis", 0);
  add(body, "Equal", {"next", "end"}, {"ends"});
  add(body, "Not", {"ends"}, {"on"});
  add(body, "Squeeze", {"on", "axis"}, {"goes_on"});
  gives(body, {"goes_on", "next", "more"});
  return w;
}

TEST_CASE("a value grows until a condition of the data ends the loop") {
  const auto words = [](std::int64_t first) {
    HostTensor x(DType::i64, {1});
    x.set_int(0, first);
    const Writer w = followed(true);
    CHECK(test::compare_with_reference(*w.import()->entries[0], {{x}}).max_abs == 0);
    const HostTensor y = run(w, {x})[0];
    std::vector<std::int64_t> list;
    for (std::int64_t i = 0; i < y.elements(); ++i) list.push_back(y.int_at(i));
    return list;
  };
  CHECK(words(1) == std::vector<std::int64_t>{1, 2, 5, 0});
  CHECK(words(5) == std::vector<std::int64_t>{5, 0});
  CHECK(words(6) == std::vector<std::int64_t>(9, 6));
  // The largest count as an input.
  HostTensor first(DType::i64, {1}), most(DType::i64, {});
  first.set_int(0, 6);
  most.set_int(0, 3);
  CHECK(run(followed(false), {first, most})[0].shape() == std::vector<std::int64_t>{4});
}

TEST_CASE("a condition that the data decide ends a loop, and a loop without an end is refused") {
  Writer w;
  w.input("s0", {1}).output("s");
  w.floats("limit", {1}, {9});
  GraphProto& body = loop(w, {"s"}, {"s"}, 100);
  add(body, "Add", {"s", "s"}, {"next"});
  add(body, "Less", {"next", "limit"}, {"goes_on"});
  gives(body, {"goes_on", "next"});
  HostTensor one(DType::f32, {1});
  one.set(0, 1);
  CHECK(run(w, {one})[0].at(0) == 16);
  Writer endless;
  endless.input("s0", {1}).output("s");
  auto& node = endless.node("Loop", {"", "", "s0"}, {"s"}, "forever");
  GraphProto& inner = body_of(node);
  takes(inner, "at", {}, TensorProto::INT64);
  takes(inner, "go", {}, TensorProto::BOOL);
  inner.add_input()->set_name("s");
  add(inner, "Neg", {"s"}, {"next"});
  gives(inner, {"go", "next"});
  CHECK(failure(endless).find(
            "node 'forever' (Loop): wanted a loop whose condition ends it within 1024 trips, found more trips") !=
        std::string::npos);
}

TEST_CASE("loops in loops read the numbers of both trips") {
  Writer w;
  w.input("s0", {2}).output("s");
  w.ints("inner_trips", {}, {90});
  GraphProto& body = loop(w, {"s"}, {"s"}, 80);
  GraphProto& inner = body_of(add(body, "Loop", {"inner_trips", "", "s"}, {"next"}));
  takes(inner, "j", {}, TensorProto::INT64);
  takes(inner, "go_on", {}, TensorProto::BOOL);
  inner.add_input()->set_name("t");
  add(inner, "Mul", {"at", "j"}, {"product"});
  test::set_int(add(inner, "Cast", {"product"}, {"number"}), "to", TensorProto::FLOAT);
  add(inner, "Add", {"t", "number"}, {"t_next"});
  gives(inner, {"go_on", "t_next"});
  gives(body, {"go", "next"});
  double sum = 0;
  for (int i = 0; i < 80; ++i) {
    for (int j = 0; j < 90; ++j) sum += i * j;
  }
  CHECK(run(w, {ramp({2})})[0].at(0) == doctest::Approx(sum));
}

TEST_CASE("Scan along any axis in both directions over a symbolic length") {
  Writer w;
  w.input("s0", {2}).input("x", {2, "T"}).output("s").output("all");
  auto& node = w.node("Scan", {"s0", "x"}, {"s", "all"});
  test::set_int(node, "num_scan_inputs", 1);
  test::set_list(node, "scan_input_axes", {-1});
  test::set_list(node, "scan_input_directions", {1});
  test::set_list(node, "scan_output_axes", {1});
  test::set_list(node, "scan_output_directions", {1});
  GraphProto& body = body_of(node);
  takes(body, "s", {2});
  takes(body, "column", {2});
  add(body, "Add", {"s", "column"}, {"next"});
  add(body, "Mul", {"next", "next"}, {"square"});
  gives(body, {"next", "square"});
  const auto found = run(w, {ramp({2}), ramp({2, 5})});
  CHECK(found[1].shape() == std::vector<std::int64_t>{2, 5});
  for (std::int64_t row = 0; row < 2; ++row) {
    double sum = static_cast<double>(row);
    for (std::int64_t t = 4; t >= 0; --t) {
      sum += static_cast<double>(row * 5 + t);
      CHECK(found[1].at(row * 5 + t) == sum * sum);
    }
    CHECK(found[0].at(row) == sum);
  }
}

TEST_CASE("Scan inputs of different lengths are refused") {
  Writer w;
  w.input("x", {4, 2}).input("y", {5, 2}).output("all");
  auto& node = w.node("Scan", {"x", "y"}, {"all"}, "walk");
  test::set_int(node, "num_scan_inputs", 2);
  GraphProto& body = body_of(node);
  takes(body, "a", {2});
  takes(body, "b", {2});
  add(body, "Add", {"a", "b"}, {"sum"});
  gives(body, {"sum"});
  CHECK(failure(w).find("node 'walk' (Scan): wanted scan inputs of one length, 4, found 5 of input 1") != std::string::npos);
}

TEST_CASE("a sequence among the inputs is one input for each element") {
  Writer w;
  auto& list = *w.graph().add_input();
  list.set_name("list");
  list.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
  w.input("x", {2}).output("more");
  w.ints("place", {}, {-1});
  w.node("SequenceInsert", {"list", "x", "place"}, {"more"});
  ImportOptions options;
  options.lengths["list"] = 2;
  options.shapes["list.0"] = {3};
  options.shapes["list.1"] = {1};
  const auto module = w.import(options);
  const Graph& graph = *module->entries[0];
  REQUIRE(graph.inputs().size() == 3);
  CHECK(graph.inputs()[1]->name == "list.1");
  REQUIRE(graph.outputs().size() == 3);
  CHECK(graph.outputs()[1].first == "more.1");
  CHECK(graph.outputs()[0].second->type.text() == "f32[3]");
  CHECK(graph.outputs()[1].second->type.text() == "f32[2]");  // before the last
  CHECK(graph.outputs()[2].second->type.text() == "f32[1]");
  CHECK(failure(w).find("give it with --length list=N") != std::string::npos);
  options.lengths["lost"] = 1;
  CHECK(failure(w, options).find("wanted a sequence or an optional among the model's inputs, found 'lost'; is it 'list'?") !=
        std::string::npos);
}

TEST_CASE("sequences are split, read and joined") {
  Writer w;
  w.input("x", {5, 2}).output("last").output("back").output("stack").output("n");
  w.ints("two", {}, {2}).ints("minus", {}, {-1});
  w.node("SplitToSequence", {"x", "two"}, {"parts"});
  w.node("SequenceAt", {"parts", "minus"}, {"last"});
  test::set_int(w.node("ConcatFromSequence", {"parts"}, {"back"}), "axis", 0);
  w.node("SequenceErase", {"parts"}, {"rest"});
  w.node("SequenceLength", {"rest"}, {"n"});
  auto& join = w.node("ConcatFromSequence", {"rest"}, {"stack"});
  test::set_int(join, "axis", -1);
  test::set_int(join, "new_axis", 1);
  const auto found = run(w, {ramp({5, 2})});
  CHECK(found[0].shape() == std::vector<std::int64_t>{1, 2});
  CHECK(found[0].at(0) == 8);
  CHECK(found[1].shape() == std::vector<std::int64_t>{5, 2});
  CHECK(found[2].shape() == std::vector<std::int64_t>{2, 2, 2});
  CHECK(found[2].at(1) == 4);
  CHECK(found[3].int_at(0) == 2);
}

TEST_CASE("a sequence is no tensor, and its positions have bounds") {
  Writer w;
  w.input("x", {2}).output("y");
  w.ints("place", {}, {2});
  w.node("SequenceConstruct", {"x", "x"}, {"pair"});
  w.node("SequenceAt", {"pair", "place"}, {"y"}, "third");
  CHECK(failure(w).find("node 'third' (SequenceAt): wanted a position from -2 to 1, found 2") != std::string::npos);
  Writer mixed;
  mixed.input("x", {2}).output("y");
  mixed.node("SequenceConstruct", {"x"}, {"one"});
  mixed.node("Relu", {"one"}, {"y"}, "act");
  CHECK(failure(mixed).find("node 'act' (Relu): wanted a tensor as input 0, found a sequence") != std::string::npos);
}

TEST_CASE("an optional input may be empty") {
  Writer w;
  auto& maybe = *w.graph().add_input();
  maybe.set_name("maybe");
  auto& tensor = *maybe.mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_tensor_type();
  tensor.set_elem_type(TensorProto::FLOAT);
  tensor.mutable_shape()->add_dim()->set_dim_value(2);
  w.output("has");
  w.node("OptionalHasElement", {"maybe"}, {"has"});
  CHECK(run(w, {ramp({2})})[0].int_at(0) == 1);
  ImportOptions options;
  options.lengths["maybe"] = -1;
  CHECK(run(w, {}, options)[0].int_at(0) == 0);
}

}  // namespace oclc::control_flow_test

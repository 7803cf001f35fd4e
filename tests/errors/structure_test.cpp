// The structure of graphs: RELIABILITY cases 22 to 35.
#include "tests/errors/import_error.h"

namespace oclc {
namespace {

using oclc_onnx::AttributeProto;
using oclc_onnx::TensorProto;
using test::failure_of;
using test::relu_model;
using test::Writer;

Writer empty() {
  Writer w;
  w.input("x", {4}).output("y", {4});
  return w;
}

TEST_CASE("case 22: cycles") {
  Writer w = empty();
  w.node("Add", {"x", "b"}, {"a"}, "first");
  w.node("Relu", {"a"}, {"m"}, "second");
  w.node("Relu", {"m"}, {"b"}, "third");
  w.node("Relu", {"b"}, {"y"}, "last");
  CHECK_FAILS(failure_of(w), "wanted a graph without cycles, found 'first' -> 'second' -> 'third' -> 'first'", 3);
  Writer self = empty();
  self.node("Add", {"x", "y"}, {"y"}, "own");
  CHECK_FAILS(failure_of(self), "wanted a graph without cycles, found 'own' -> 'own'", 3);
}

TEST_CASE("case 23: nodes in any order") {
  Writer w = empty();
  w.node("Relu", {"b"}, {"y"}, "last");
  w.node("Neg", {"a"}, {"b"}, "middle");
  w.node("Exp", {"x"}, {"a"}, "first");
  std::vector<std::string> warnings;
  const auto module = w.import(test::with_warnings(warnings));
  CHECK(warnings == std::vector<std::string>{"the nodes of the graph are not in topological order; they were sorted"});
  std::vector<std::string> order;
  for (const Node* node : module->entries[0]->nodes()) order.push_back(node->source);
  CHECK(order == std::vector<std::string>{"first", "middle", "last"});
}

TEST_CASE("case 24: names given twice") {
  Writer outputs = empty();
  outputs.node("Relu", {"x"}, {"y"}, "one");
  outputs.node("Neg", {"x"}, {"y"}, "two");
  CHECK_FAILS(failure_of(outputs), "node 'two' (Neg): wanted outputs with names of their own, found 'y', which exists already",
              3);
  Writer overwrite = empty();
  overwrite.node("Relu", {"x"}, {"x"}, "one");
  CHECK_FAILS(failure_of(overwrite),
              "node 'one' (Relu): wanted outputs with names of their own, found 'x', which is a graph input", 3);
  Writer initializers = relu_model();
  initializers.floats("w", {1}, {1}).floats("w", {1}, {2});
  CHECK_FAILS(failure_of(initializers), "wanted different names of initializers, found 'w' twice", 3);
  Writer inputs = relu_model();
  inputs.input("x", {4});
  CHECK_FAILS(failure_of(inputs), "wanted different names of graph inputs, found 'x' twice", 3);
  Writer results = relu_model();
  results.output("y", {"N", 4});
  CHECK_FAILS(failure_of(results), "wanted different names of graph outputs, found 'y' twice", 3);
}

TEST_CASE("case 25: an initializer named like a node's output") {
  Writer w = relu_model();
  w.floats("y", {1}, {1});
  CHECK_FAILS(failure_of(w), "node 'act' (Relu): wanted outputs with names of their own, found 'y', which exists already", 3);
}

TEST_CASE("case 26: names that nobody defines") {
  Writer w = empty();
  w.floats("conv1.weight", {4}, {1, 2, 3, 4});
  w.node("Add", {"x", "conv1.wieght"}, {"y"}, "sum");
  CHECK_FAILS(failure_of(w),
              "node 'sum' (Add): wanted an input 'conv1.wieght' that something defines, found none; is it 'conv1.weight'?", 3);
  Writer output = empty();
  output.node("Relu", {"x"}, {"yy"}, "act");
  CHECK_FAILS(failure_of(output), "wanted a node that produces the output 'y', found none; is it 'yy'?", 3);
}

TEST_CASE("case 27: graphs without outputs or nodes, outputs that are inputs or constants") {
  Writer no_outputs = relu_model();
  no_outputs.graph().clear_output();
  CHECK_FAILS(failure_of(no_outputs), "wanted a graph with outputs, found none", 3);
  Writer no_nodes = empty();
  no_nodes.graph().mutable_output(0)->set_name("x");
  CHECK_FAILS(failure_of(no_nodes), "wanted a graph with nodes, found none", 3);
  Writer w = empty();
  w.output("x", {4}).output("c", {2}).output("again", {4}).floats("c", {2}, {1, 2});
  w.node("Relu", {"x"}, {"y"});
  w.node("Identity", {"y"}, {"again"});
  const auto module = w.import();
  const auto& outputs = module->entries[0]->outputs();
  REQUIRE(outputs.size() == 4);
  CHECK(outputs[1].second == module->entries[0]->inputs()[0].get());
  CHECK(constant_of(outputs[2].second)->at(1) == 2);
  CHECK(outputs[3].second == outputs[0].second);
}

TEST_CASE("case 28: inputs left out, too many, too few") {
  Writer clip(13);
  clip.input("x", {4}).output("y", {4}).floats("top", {}, {1});
  clip.node("Clip", {"x", "", "top"}, {"y"}, "clip");
  CHECK(clip.import()->entries[0]->size() >= 1);
  Writer trailing(13);
  trailing.input("x", {4}).output("y", {4});
  trailing.node("Relu", {"x", "", ""}, {"y"}, "act");
  CHECK(trailing.import()->entries[0]->size() == 1);
  Writer many = empty();
  many.node("Relu", {"x", "x"}, {"y"}, "act");
  CHECK_FAILS(failure_of(many), "node 'act' (Relu): wanted 1 input, found 2", 3);
  Writer few = empty();
  few.node("Add", {"x"}, {"y"}, "sum");
  CHECK_FAILS(failure_of(few), "node 'sum' (Add): wanted 2 inputs, found 1", 3);
  Writer hole = empty();
  hole.node("Add", {"", "x"}, {"y"}, "sum");
  CHECK_FAILS(failure_of(hole), "node 'sum' (Add): wanted input 0, found none", 3);
  Writer extra = empty();
  extra.node("Relu", {"x"}, {"y", "z"}, "act");
  CHECK_FAILS(failure_of(extra), "node 'act' (Relu): wanted no use of output 1, found 'z'", 4);
}

Writer with_if(bool condition_known) {
  Writer w = empty();
  if (condition_known) {
    auto& yes = *w.graph().add_initializer();
    yes.set_name("yes");
    yes.set_data_type(TensorProto::BOOL);
    yes.add_int32_data(1);
  } else {
    w.input("yes", {}, TensorProto::BOOL);
  }
  w.node("Exp", {"x"}, {"e"}, "outer");
  auto& node = w.node("If", {"yes"}, {"y"}, "choice");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& graph = *test::attribute(node, name, AttributeProto::GRAPH).mutable_g();
    // `e` hides the outer value of that name in the branch.
    Writer::fill(*graph.add_node(), "Neg", {"e"}, {"n"}, std::string(name) + "_neg");
    Writer::fill(*graph.add_node(), name == std::string("then_branch") ? "Relu" : "Nonsense", {"n"}, {"r"},
                 std::string(name) + "_act");
    test::set_type(*graph.add_output(), "r", {4});
  }
  return w;
}

TEST_CASE("case 29: unused nodes, inputs and branches") {
  Writer w = relu_model();
  w.input("spare", {2});
  w.node("Nonsense", {"spare"}, {"nothing"});
  const auto module = w.import();
  CHECK(module->entries[0]->size() == 1);
  CHECK(module->entries[0]->inputs().size() == 2);
  CHECK(with_if(true).import()->entries[0]->size() == 3);  // Exp, Neg, Relu: not the branch with Nonsense
}

TEST_CASE("case 30: branches") {
  const auto captured = with_if(true).import();
  std::vector<std::string> sources;
  for (const Node* node : captured->entries[0]->nodes()) sources.push_back(node->source);
  CHECK(sources == std::vector<std::string>{"outer", "then_branch_neg", "then_branch_act"});
  // Both branches are read where the data choose.
  CHECK_FAILS(
      failure_of(with_if(false)),
      "wanted supported operators only, found Nonsense (opset 17): 1 node: 'else_branch_act'; `oclc --list-ops` lists all "
      "operators of a model",
      4);
  Writer types = with_if(true);
  auto& node = *types.graph().mutable_node(1);
  node.mutable_attribute(1)->mutable_g()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      TensorProto::INT64);
  CHECK_FAILS(failure_of(types), "node 'choice' (If): wanted one type of output 0 in both branches, found FLOAT and INT64", 3);
  Writer counts = with_if(true);
  counts.graph().mutable_node(1)->add_output("second");
  CHECK_FAILS(failure_of(counts), "node 'choice' (If): wanted 2 outputs of else_branch, found 1", 3);
  Writer hidden = with_if(true);
  auto& then_branch = *hidden.graph().mutable_node(1)->mutable_attribute(0)->mutable_g();
  test::set_floats(*then_branch.add_initializer(), "e", {4}, {1, 2, 3, 4});
  const auto shadowed = hidden.import();
  const Node* neg = shadowed->entries[0]->outputs()[0].second->producer->inputs[0]->producer;
  REQUIRE(constant_of(neg->inputs[0]) != nullptr);  // not the value of node 'outer'
  CHECK(constant_of(neg->inputs[0])->at(3) == 4);
}

TEST_CASE("case 32: values that are no dense tensors of numbers") {
  Writer sequence = relu_model();
  auto& input = *sequence.graph().add_input();
  input.set_name("list");
  input.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  CHECK_FAILS(failure_of(sequence),
              "wanted input 'list' of a length known when compiling, found a sequence; give it with --length list=N", 4);
  Writer complex = relu_model();
  complex.input("waves", {2}, TensorProto::COMPLEX64);
  CHECK_FAILS(failure_of(complex),
              "wanted input 'waves' of a supported element type, found COMPLEX64; convert it to a number type first", 4);
  Writer sparse = relu_model();
  sparse.graph().add_sparse_initializer()->mutable_values()->set_name("s");
  CHECK_FAILS(failure_of(sparse), "wanted sparse initializer 's' as a dense tensor, found a sparse one; store it densely", 4);
}

TEST_CASE("case 33: attributes of a wrong type, missing, twice, referring outside of functions") {
  Writer wrong = empty();
  test::set_text(wrong.node("Softmax", {"x"}, {"y"}, "soft"), "axis", "last");
  CHECK_FAILS(failure_of(wrong), "node 'soft' (Softmax): wanted attribute 'axis' as an integer, found a text", 3);
  Writer missing = empty();
  missing.node("Concat", {"x", "x"}, {"y"}, "join");
  CHECK_FAILS(failure_of(missing), "node 'join' (Concat): wanted attribute 'axis', found none", 3);
  Writer twice = empty();
  auto& node = twice.node("Softmax", {"x"}, {"y"}, "soft");
  test::set_int(node, "axis", 0);
  test::set_int(node, "axis", 0);
  CHECK_FAILS(failure_of(twice), "node 'soft' (Softmax): wanted each attribute once, found 'axis' twice", 3);
  Writer reference = empty();
  test::attribute(reference.node("Softmax", {"x"}, {"y"}, "soft"), "axis", AttributeProto::INT).set_ref_attr_name("a");
  CHECK_FAILS(
      failure_of(reference),
      "wanted node 'soft' (Softmax): attribute 'axis' with a value, outside of functions, found a reference to attribute 'a'",
      3);
  Writer mixed = empty();
  test::attribute(mixed.node("Softmax", {"x"}, {"y"}, "soft"), "axis", AttributeProto::INT).set_f(1);
  CHECK_FAILS(failure_of(mixed),
              "wanted node 'soft' (Softmax): attribute 'axis' as an integer, the type it declares, found a real number", 3);
  Writer unknown = empty();
  test::set_int(unknown.node("Relu", {"x"}, {"y"}, "act"), "speed", 3);
  CHECK_FAILS(failure_of(unknown),
              "node 'act' (Relu): wanted attributes that opset 17 of the operator has, found 'speed'; the model needs a newer "
              "operator, or the attribute removed",
              4);
  Writer zero = empty();
  test::set_int(zero.node("Relu", {"x"}, {"y"}, "act"), "speed", 0);
  CHECK(zero.import()->entries.size() == 1);
}

TEST_CASE("case 35: dimensions") {
  Writer negative;
  negative.input("x", {-5, 4}).output("y", {4});
  negative.node("Relu", {"x"}, {"y"});
  CHECK_FAILS(failure_of(negative), "wanted input 'x' with dimensions from 0 to 1099511627776, found -5", 3);
  Writer deep;
  deep.input("x", std::vector<test::Dim>(33, 1)).output("y");
  deep.node("Relu", {"x"}, {"y"});
  CHECK_FAILS(failure_of(deep), "wanted input 'x' of rank at most 32, found rank 33", 3);
}

TEST_CASE("case 40: bindings of dimensions that do not fit") {
  const Writer w = relu_model();
  ImportOptions options;
  options.dims["M"] = 2;
  CHECK_FAILS(failure_of(w, options), "wanted a symbolic dimension of the model in --dim, found 'M'; it has N", 2);
  options.dims = {{"N", -1}};
  CHECK_FAILS(failure_of(w, options), "wanted a dimension from 0 to 1099511627776 for --dim, found -1", 2);
  options.dims = {{"N", 2}};
  options.shapes["x"] = {3, 4};
  CHECK_FAILS(failure_of(w, options), "wanted one value of dimension 'N', found 3 and 2 (--dim)", 2);
  options.dims.clear();
  options.shapes["x"] = {3, 5};
  CHECK_FAILS(failure_of(w, options), "wanted 4 in axis 1 of input 'x', found 5", 2);
  options.shapes["x"] = {3};
  CHECK_FAILS(failure_of(w, options), "wanted 2 dimensions for input 'x', found 1", 2);
  options.shapes = {{"z", {3}}};
  CHECK_FAILS(failure_of(w, options), "wanted an input of the model, found 'z'; is it 'x'?", 2);
}

TEST_CASE("case 41: a declared output shape that is wrong") {
  Writer w;
  w.input("x", {"N", 4}).output("y", {"N", 5});
  w.node("Relu", {"x"}, {"y"});
  std::vector<std::string> warnings;
  CHECK(w.import(test::with_warnings(warnings))->entries[0]->outputs()[0].second->type.text() == "f32[N, 4]");
  CHECK(warnings == std::vector<std::string>{"output 'y' is declared with 5 in axis 1, but is f32[N, 4]"});
}

}  // namespace
}  // namespace oclc

// Models whose input is a map: two vectors, of keys and of values.
#include <doctest/doctest.h>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::maps_test {

using oclc_onnx::AttributeProto;
using oclc_onnx::TensorProto;
using test::Writer;

Writer model_of(const std::string& op, int key, int value) {
  Writer w;
  auto& domain = *w.model.add_opset_import();
  domain.set_domain("ai.onnx.ml");
  domain.set_version(1);
  auto& input = *w.graph().add_input();
  input.set_name("x");
  input.mutable_type()->mutable_map_type()->set_key_type(key);
  input.mutable_type()->mutable_map_type()->mutable_value_type()->mutable_tensor_type()->set_elem_type(value);
  w.output("y");
  w.node(op, {"x"}, {"y"}).set_domain("ai.onnx.ml");
  return w;
}

oclc_onnx::NodeProto& node_of(Writer& w) { return *w.graph().mutable_node(0); }

HostTensor numbers(DType dtype, const std::vector<double>& values) {
  HostTensor t(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), values[i]);
  return t;
}

HostTensor whole(const std::vector<std::int64_t>& values) {
  HostTensor t(DType::i64, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<std::int64_t>(i), values[i]);
  return t;
}

HostTensor run(const Writer& w, const HostTensor& keys, const HostTensor& values) {
  const auto module = w.import();
  const Graph& graph = *module->entries[0];
  REQUIRE(verify(graph) == "");
  REQUIRE(graph.inputs().size() == 2);
  CHECK(graph.inputs()[0]->name == "x.keys");
  CHECK(graph.inputs()[1]->name == "x.values");
  return evaluate(graph, std::vector{keys, values}).at(0);
}

TEST_CASE("DictVectorizer puts values in the order of its vocabulary, and 0 where there is no key") {
  Writer w = model_of("DictVectorizer", TensorProto::STRING, TensorProto::FLOAT);
  auto& list = test::attribute(node_of(w), "string_vocabulary", AttributeProto::STRINGS);
  for (const char* word : {"a", "b", "cc"}) list.add_strings(word);
  const std::vector<std::string> keys{"cc", "zz", "a"};
  const HostTensor y = run(w, HostTensor::from_texts(keys, {3}), numbers(DType::f32, {2.5, 9, -1}));
  CHECK(y.shape() == std::vector<std::int64_t>{1, 3});
  CHECK(y.at(0) == -1);
  CHECK(y.at(1) == 0);
  CHECK(y.at(2) == 2.5);
}

TEST_CASE("DictVectorizer takes integers as keys") {
  Writer w = model_of("DictVectorizer", TensorProto::INT64, TensorProto::DOUBLE);
  test::set_list(node_of(w), "int64_vocabulary", {5, -3});
  const HostTensor y = run(w, whole({-3, 11}), numbers(DType::f64, {1.25, 4}));
  CHECK(y.at(0) == 0);
  CHECK(y.at(1) == 1.25);
}

TEST_CASE("CastMap gives values in the order of their keys, or at them") {
  Writer dense = model_of("CastMap", TensorProto::INT64, TensorProto::FLOAT);
  test::set_text(node_of(dense), "cast_to", "TO_INT64");
  const HostTensor y = run(dense, whole({9, 2, 4}), numbers(DType::f32, {3.5, -1.75, 7}));
  CHECK(y.type().text() == "i64[1, 3]");
  CHECK(y.int_at(0) == -1);
  CHECK(y.int_at(1) == 7);
  CHECK(y.int_at(2) == 3);
  Writer sparse = model_of("CastMap", TensorProto::INT64, TensorProto::STRING);
  test::set_text(node_of(sparse), "map_form", "SPARSE");
  test::set_int(node_of(sparse), "max_map", 4);
  const std::vector<std::string> values{"3.5", "-1"};
  const HostTensor z = run(sparse, whole({3, 0}), HostTensor::from_texts(values, {2}));
  REQUIRE(z.elements() == 4);
  CHECK(z.at(0) == -1);
  CHECK(z.at(1) == 0);
  CHECK(z.at(3) == 3.5);
}

TEST_CASE("maps are refused where they are no input of such an operator") {
  Writer w = model_of("CastMap", TensorProto::STRING, TensorProto::FLOAT);
  CHECK(w.refusal().find("wanted a map whose keys are integers") != std::string::npos);
  Writer empty = model_of("DictVectorizer", TensorProto::INT64, TensorProto::FLOAT);
  test::set_list(node_of(empty), "int64_vocabulary", {});
  CHECK(empty.refusal().find("vocabulary") != std::string::npos);
  Writer tensor = model_of("CastMap", TensorProto::INT64, TensorProto::FLOAT);
  test::set_type(*tensor.graph().mutable_input(0), "x", {3}, TensorProto::FLOAT);
  CHECK(tensor.refusal().find("wanted a map, found a tensor") != std::string::npos);
  Writer maps = model_of("CastMap", TensorProto::INT64, TensorProto::FLOAT);
  const auto map = maps.graph().input(0).type();
  *maps.graph().mutable_input(0)->mutable_type()->mutable_sequence_type()->mutable_elem_type() = map;
  CHECK(maps.refusal().find("found a map") != std::string::npos);
}

}  // namespace oclc::maps_test

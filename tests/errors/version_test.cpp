// Versions, operators, functions, names: RELIABILITY cases 12 to 21.
#include <set>

#include "tests/errors/import_error.h"

namespace oclc {
namespace {

using test::failure_of;
using test::relu_model;
using test::Writer;

TEST_CASE("case 12: ir_version missing, 0, too new, old") {
  Writer w = relu_model();
  w.model.clear_ir_version();
  CHECK_FAILS(failure_of(w), "wanted an ir_version of 1 or more, found none; the file may be damaged", 3);
  w.model.set_ir_version(0);
  CHECK_FAILS(failure_of(w), "wanted an ir_version of 1 or more, found 0; the file may be damaged", 3);
  w.model.set_ir_version(15);
  std::vector<std::string> warnings;
  const ImportOptions options = test::with_warnings(warnings);
  CHECK(w.import(options)->entries[0]->size() == 1);
  CHECK(warnings == std::vector<std::string>{"ir_version 15 is newer than 14, the newest known"});
  // Old files list initializers among the inputs.
  Writer old;
  old.model.set_ir_version(2);
  old.input("x", {4}).input("b", {4}).output("y", {4}).floats("b", {4}, {1, 2, 3, 4});
  old.node("Add", {"x", "b"}, {"y"});
  const auto module = old.import();
  REQUIRE(module->entries[0]->inputs().size() == 1);
  CHECK(module->entries[0]->inputs()[0]->name == "x");
}

TEST_CASE("case 13: opset imports missing, contradicting, bizarre") {
  Writer w = relu_model();
  w.model.clear_opset_import();
  CHECK_FAILS(failure_of(w), "wanted opset imports in the model, found none", 3);
  w.model.add_opset_import()->set_version(13);
  auto& second = *w.model.add_opset_import();
  second.set_domain("ai.onnx");
  second.set_version(13);
  CHECK(w.import()->entries.size() == 1);
  second.set_version(12);
  CHECK_FAILS(failure_of(w), "wanted one opset version for domain '' in the model, found 13 and 12", 3);
  w.model.mutable_opset_import()->RemoveLast();
  for (const std::int64_t version : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX}) {
    w.model.mutable_opset_import(0)->set_version(version);
    CHECK_FAILS(failure_of(w), "wanted an opset version from 1 to 10000 for domain '', found " + std::to_string(version), 3);
  }
}

TEST_CASE("case 14: an opset newer than known") {
  Writer w = relu_model();
  w.model.mutable_opset_import(0)->set_version(99);
  CHECK_FAILS(
      failure_of(w),
      "wanted opset 1 to 28, found opset 99 > 28; operators that did not change could be tried with --allow-newer-opset", 4);
  ImportOptions newer;
  newer.allow_newer_opset = true;
  CHECK(w.import(newer)->entries[0]->size() == 1);
}

TEST_CASE("case 15: operators as the oldest opsets have them") {
  for (const int version : {1, 6}) {
    Writer w = relu_model();
    w.model.mutable_opset_import(0)->set_version(version);
    CHECK(w.import()->entries[0]->size() == 1);
  }
  Writer w(6);
  w.input("x", {2, 3, 4}).input("y", {3}).output("z", {2, 3, 4});
  test::NodeProto& add = w.node("Add", {"x", "y"}, {"z"}, "sum");
  CHECK_FAILS(failure_of(w),
              "node 'sum' (Add): wanted operands of one shape, or attribute 'broadcast', found f32[2, 3, 4] and f32[3]", 3);
  test::set_int(add, "broadcast", 1);
  test::set_int(add, "axis", 1);
  CHECK(w.import()->entries[0]->outputs()[0].second->type.text() == "f32[2, 3, 4]");
  add.mutable_attribute(1)->set_i(3);
  CHECK_FAILS(failure_of(w), "node 'sum' (Add): wanted an axis from -3 to 2, found axis 3", 3);
}

TEST_CASE("case 16: all unsupported operators at once") {
  Writer w;
  w.input("x", {4}).output("y", {4});
  std::string last = "x";
  for (int i = 0; i < 5; ++i) {
    const std::string next = "n" + std::to_string(i);
    w.node("Nonsense", {last}, {next}, "strange" + std::to_string(i));
    last = next;
  }
  auto& foreign = w.node("Gelu", {last}, {"m"});
  foreign.set_domain("com.microsoft");
  w.node("Bizarre", {"m"}, {"d"}, "bizarre");
  w.node("Add", {"m", "d"}, {"y"}, "sum");
  w.node("Unused", {"x"}, {"nobody"}, "unused");  // leads nowhere, so nobody misses it
  const std::string text =
      "wanted supported operators only, found Bizarre (opset 17): 1 node: 'bizarre'; Nonsense (opset 17): 5 nodes: 'strange0', "
      "'strange1', 'strange2', ...; "
      "com.microsoft.Gelu (opset 0): 1 node: 'Gelu_5'; `oclc --list-ops` lists all operators of a model";
  CHECK_FAILS(failure_of(w), text, 4);
  const std::string bytes = w.bytes();
  const std::vector<OpUse> uses = list_ops_bytes(std::as_bytes(std::span(bytes)));
  REQUIRE(uses.size() == 5);
  CHECK(uses[0].op == "Add");
  CHECK(uses[0].supported);
  CHECK(uses[2].op == "Nonsense");
  CHECK(uses[2].count == 5);
  CHECK(!uses[2].supported);
  CHECK(uses[4].domain == "com.microsoft");
}

TEST_CASE("case 17: the domain ai.onnx is ONNX's own") {
  Writer w = relu_model();
  w.graph().mutable_node(0)->set_domain("ai.onnx");
  CHECK(w.import()->entries[0]->size() == 1);
}

// Function `name`: y = body(x).
test::NodeProto& function(Writer& w, const std::string& name, const std::string& op) {
  auto& f = *w.model.add_functions();
  f.set_name(name);
  f.set_domain("local");
  f.add_input("x");
  f.add_output("y");
  f.add_opset_import()->set_version(17);
  auto& node = *f.add_node();
  Writer::fill(node, op, {"x"}, {"y"}, "inside");
  return node;
}

Writer calls(const std::string& name) {
  Writer w;
  w.input("x", {4}).output("y", {4});
  w.node(name, {"x"}, {"y"}, "call").set_domain("local");
  return w;
}

TEST_CASE("case 18: functions") {
  SUBCASE("are expanded, with their attributes") {
    Writer w = calls("Scale");
    test::set_float(*w.graph().mutable_node(0), "slope", 0.25F);
    auto& inside = function(w, "Scale", "LeakyRelu");
    w.model.mutable_functions(0)->add_attribute("slope");
    auto& reference = test::attribute(inside, "alpha", oclc_onnx::AttributeProto::FLOAT);
    reference.set_ref_attr_name("slope");
    const auto module = w.import();
    bool found = false;
    for (const Node* node : module->entries[0]->nodes()) {
      CHECK(node->source == "call/inside");
      if (const HostTensor* t = constant_of(node->output())) found = found || t->at(0) == 0.25;
    }
    CHECK(found);
  }
  SUBCASE("that call themselves are refused") {
    Writer w = calls("A");
    function(w, "A", "B").set_domain("local");
    function(w, "B", "A").set_domain("local");
    CHECK_FAILS(failure_of(w), "wanted functions that do not call themselves, found 'A' -> 'B' -> 'A'", 3);
  }
  SUBCASE("do not double without bound") {
    Writer w = calls("f0");
    for (int i = 0; i < 50; ++i) {
      const std::string next = "f" + std::to_string(i + 1);
      function(w, "f" + std::to_string(i), i < 49 ? next : "Relu").set_domain(i < 49 ? "local" : "");
      auto& f = *w.model.mutable_functions(i);
      f.mutable_node(0)->set_output(0, "m");
      auto& again = *f.add_node();
      Writer::fill(again, f.node(0).op_type(), {"m"}, {"y"});
      again.set_domain(f.node(0).domain());
    }
    CHECK_FAILS(failure_of(w),
                "wanted at most 1000000 nodes after functions are expanded, found more; the limit is there against damaged and "
                "hostile files",
                3);
  }
  SUBCASE("that exist twice are refused") {
    Writer w = calls("A");
    function(w, "A", "Relu");
    function(w, "A", "Neg");
    CHECK_FAILS(failure_of(w), "wanted function 'A' once, found twice", 3);
  }
  SUBCASE("with too many inputs are refused") {
    Writer w = calls("A");
    w.graph().mutable_node(0)->add_input("x");
    function(w, "A", "Relu");
    CHECK_FAILS(failure_of(w), "node 'call' (local.A): wanted at most 1 inputs, found 2", 3);
  }
  SUBCASE("give their attributes' default values") {
    Writer w = calls("Scale");
    auto& inside = function(w, "Scale", "LeakyRelu");
    test::attribute(inside, "alpha", oclc_onnx::AttributeProto::FLOAT).set_ref_attr_name("slope");
    oclc_onnx::AttributeProto& slope = *w.model.mutable_functions(0)->add_attribute_proto();
    slope.set_name("slope");
    slope.set_type(oclc_onnx::AttributeProto::FLOAT);
    slope.set_f(0.5F);
    const auto module = w.import();
    bool found = false;
    for (const Node* node : module->entries[0]->nodes()) {
      if (const HostTensor* t = constant_of(node->output())) found = found || t->at(0) == 0.5;
    }
    CHECK(found);
  }
}

TEST_CASE("case 19: names of any bytes") {
  const std::string odd = std::string("*/ \"%s\\ \n\xff\xfe", 11) + std::string(1, '\0') + "end";
  Writer w;
  w.input(odd, {odd.c_str(), 4}).output("out\n", {"N", 4});
  w.node("Relu", {odd}, {"out\n"}, odd);
  const auto module = w.import();
  CHECK(module->entries[0]->nodes()[0]->source == odd);
  CHECK(module->entries[0]->inputs()[0]->name == odd);
  REQUIRE(module->symbols.size() == 1);
  CHECK(module->symbols[0].symbol_name() == "_s_");
  // In messages they are escaped.
  w.node("Relu", {"nowhere"}, {"z"}, odd);
  CHECK_FAILS(failure_of(w),
              "node '*/ \"%s\\ \\x0a\\xff\\xfe\\x00end' (Relu): wanted an input 'nowhere' that something defines, found none",
              3);
  Writer tooLong;
  tooLong.input("x", {4}).output("y", {4});
  tooLong.node("Relu", {"x"}, {"y"}, std::string(1 << 20, 'n'));
  CHECK_FAILS(failure_of(tooLong),
              "wanted names of at most 4096 bytes, found one of 1048576 bytes that starts with "
              "'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'",
              3);
}

TEST_CASE("case 20: names that look alike stay apart") {
  Writer w;
  w.input("a.b", {"batch size", 4}).input("a_b", {"batch_size", 4}).input("kernel", {"half", 4}).output("main", {4});
  w.output("a-b", {4}).output("float", {4});
  w.node("Relu", {"a.b"}, {"main"}).set_name("same");
  w.node("Relu", {"a_b"}, {"a-b"}).set_name("same");
  w.node("Relu", {"kernel"}, {"float"}).set_name("kernel");
  const auto module = w.import();
  std::set<std::string> symbols;
  for (const Expr& e : module->symbols) symbols.insert(e.symbol_name().value());
  CHECK(symbols == std::set<std::string>{"batch_size", "batch_size_2", "half"});
  CHECK(module->entries[0]->size() == 3);
}

TEST_CASE("case 21: training information, metadata and annotations are ignored") {
  Writer w = relu_model();
  // Fields of other numbers than those read, as they lie in a file: a key and the bytes' length, then the bytes.
  const std::string author =
      "\x0a\x06"
      "author"
      "\x12\x03"
      "who";
  const std::string training =
      "\x12\x05\x12\x03"
      "sgd";
  w.model.mutable_unknown_fields()->append("\x72\x0d").append(author).append("\xa2\x01\x07").append(training);
  w.graph().mutable_unknown_fields()->append("\x72\x03\x0a\x01x");
  w.graph().mutable_node(0)->mutable_unknown_fields()->append("\x4a\x0d").append(author);
  std::vector<std::string> warnings;
  CHECK(w.import(test::with_warnings(warnings))->entries[0]->size() == 1);
  CHECK(warnings.empty());
}

}  // namespace
}  // namespace oclc

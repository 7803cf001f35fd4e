// Strings where they cannot be.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/errors/import_error.h"

namespace oclc::test {
namespace {

Writer words(const std::string& op, std::int64_t opset = 20) {
  Writer w(opset);
  w.input("x", {3}, TensorProto::STRING).output("y");
  w.node(op, {"x"}, {"y"}, "n");
  return w;
}

NodeProto& node_of(Writer& w) { return *w.graph().mutable_node(0); }

constexpr const char* kAdvice = "; strings may be moved, compared, split, joined, matched and cast";

TEST_CASE("an operator that computes with numbers refuses strings") {
  for (const char* op : {"Relu", "Softmax", "ReduceSum", "Not", "NonZero", "ArgMax", "CumSum"}) {
    CAPTURE(op);
    Writer w = words(op);
    CHECK_FAILS(failure_of(w), fmt::format("node 'n' ({}): wanted numbers as input 0, found string[3]{}", op, kAdvice), 4);
  }
  Writer add(20);
  add.input("x", {3}).input("s", {3}, TensorProto::STRING).output("y");
  add.node("Add", {"x", "s"}, {"y"}, "sum");
  CHECK_FAILS(failure_of(add), std::string("node 'sum' (Add): wanted numbers as input 1, found string[3]") + kAdvice, 4);
}

TEST_CASE("operators on strings refuse what they cannot do") {
  Writer w(20);
  w.input("x", {3}).output("y").node("StringNormalizer", {"x"}, {"y"}, "n");
  CHECK_FAILS(failure_of(w), "node 'n' (StringNormalizer): wanted strings as input 0, found f32[3]", 3);
  Writer rows = words("StringNormalizer");
  rows.graph().clear_input();
  rows.input("x", {2, 3}, TensorProto::STRING);
  CHECK_FAILS(failure_of(rows), "node 'n' (StringNormalizer): wanted strings [C] or [1, C], found string[2, 3]", 3);
  Writer change = words("StringNormalizer");
  set_text(node_of(change), "case_change_action", "TITLE");
  CHECK_FAILS(failure_of(change), "node 'n' (StringNormalizer): wanted case_change_action NONE, LOWER or UPPER, found TITLE",
              3);
  Writer match = words("RegexFullMatch");
  set_text(node_of(match), "pattern", "(a)\\1");
  CHECK_FAILS(failure_of(match),
              "node 'n' (RegexFullMatch): wanted settings that the operator knows, found a back reference, which RE2 does not "
              "have at byte 4 of the pattern",
              3);
  Writer concat(20);
  concat.input("a", {2}, TensorProto::STRING).input("b", {3}, TensorProto::STRING).output("y");
  concat.node("StringConcat", {"a", "b"}, {"y"}, "n");
  CHECK(failure_of(concat).code == ExitCode::bad_model);
}

TEST_CASE("string tensors hold texts without NUL in string_data") {
  Writer raw = relu_model();
  TensorProto& t = *raw.graph().add_initializer();
  t.set_name("s");
  t.set_data_type(TensorProto::STRING);
  t.add_dims(1);
  t.set_raw_data("a");
  CHECK_FAILS(failure_of(raw), "wanted initializer 's': STRING data in string_data, found raw_data", 3);
  t.clear_raw_data();
  CHECK_FAILS(failure_of(raw), "wanted initializer 's': 1 values in string_data for STRING [1], found 0", 3);
  t.add_string_data(std::string("a\0b", 3));
  CHECK_FAILS(failure_of(raw), "wanted initializer 's' of texts without NUL, found 'a\\x00b'", 4);
}

TEST_CASE("a shape given as strings is refused") {
  Writer w(20);
  w.input("x", {3}).output("y");
  TensorProto& t = *w.graph().add_initializer();
  t.set_name("s");
  t.set_data_type(TensorProto::STRING);
  t.add_dims(1);
  t.add_string_data("3");
  w.node("Reshape", {"x", "s"}, {"y"}, "n");
  CHECK_FAILS(failure_of(w), "node 'n' (Reshape): wanted integers as the new shape, found string[1]", 3);
}

}  // namespace
}  // namespace oclc::test

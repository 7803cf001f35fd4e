// Operators on strings, by what ONNX's specification says of them.
#include <doctest/doctest.h>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::strings_test {

using oclc_onnx::AttributeProto;
using oclc_onnx::TensorProto;
using test::Writer;
using List = std::vector<std::string>;

HostTensor texts(std::vector<std::int64_t> shape, const List& values) {
  return HostTensor::from_texts(values, std::move(shape));
}

std::vector<HostTensor> run(const Writer& w, const std::vector<HostTensor>& inputs) {
  const auto module = w.import();
  REQUIRE(verify(*module->entries[0]) == "");
  return evaluate(*module->entries[0], inputs);
}

List list_of(const HostTensor& t) {
  List out;
  for (std::int64_t i = 0; i < t.elements(); ++i) out.push_back(t.text_at(i));
  return out;
}

std::vector<std::int64_t> ints_of(const HostTensor& t) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < t.elements(); ++i) out.push_back(t.int_at(i));
  return out;
}

void set_texts(oclc_onnx::NodeProto& node, const std::string& name, const List& values) {
  AttributeProto& a = test::attribute(node, name, AttributeProto::STRINGS);
  for (const std::string& v : values) a.add_strings(v);
}

TEST_CASE("StringNormalizer keeps what is no stop word, in one row too") {
  for (const bool row : {false, true}) {
    Writer w(10);
    w.input("x", row ? std::vector<test::Dim>{1, "C"} : std::vector<test::Dim>{"C"}, TensorProto::STRING).output("y");
    auto& node = w.node("StringNormalizer", {"x"}, {"y"});
    test::set_text(node, "case_change_action", "UPPER");
    set_texts(node, "stopwords", {"monday"});
    const std::vector<std::int64_t> shape = row ? std::vector<std::int64_t>{1, 3} : std::vector<std::int64_t>{3};
    const auto found = run(w, {texts(shape, {"Monday", "tuesday", "wednesday"})});
    CHECK(list_of(found[0]) == List{"TUESDAY", "WEDNESDAY"});
    CHECK(found[0].shape() == (row ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{2}));
    CHECK(list_of(run(w, {texts(shape, {"monday", "MONDAY", "Monday"})})[0]) == List{""});
  }
}

TEST_CASE("StringNormalizer without stop words keeps the shape") {
  Writer w(10);
  w.input("x", {"C"}, TensorProto::STRING).output("y");
  test::set_int(w.node("StringNormalizer", {"x"}, {"y"}), "is_case_sensitive", 1);
  const auto module = w.import();
  CHECK(module->entries[0]->outputs()[0].second->type.text() == "string[C]");
  CHECK(list_of(evaluate(*module->entries[0], std::vector{texts({2}, {"a", "B"})})[0]) == List{"a", "B"});
}

TEST_CASE("StringConcat broadcasts") {
  Writer w(20);
  w.input("a", {2, 1}, TensorProto::STRING).input("b", {3}, TensorProto::STRING).output("y");
  w.node("StringConcat", {"a", "b"}, {"y"});
  const auto found = run(w, {texts({2, 1}, {"a", "b"}), texts({3}, {".com", "", "é"})});
  CHECK(found[0].shape() == std::vector<std::int64_t>{2, 3});
  CHECK(list_of(found[0]) == List{"a.com", "a", "aé", "b.com", "b", "bé"});
}

TEST_CASE("StringSplit gives the parts and how many they are") {
  const auto split = [](const List& words, std::optional<std::string> delimiter, std::optional<std::int64_t> most) {
    Writer w(20);
    w.input("x", {"N"}, TensorProto::STRING).output("y").output("z");
    auto& node = w.node("StringSplit", {"x"}, {"y", "z"});
    if (delimiter) test::set_text(node, "delimiter", *delimiter);
    if (most) test::set_int(node, "maxsplit", *most);
    return run(w, {texts({static_cast<std::int64_t>(words.size())}, words)});
  };
  const auto basic = split({"abc.com", "abc.net"}, ".", {});
  CHECK(basic[0].shape() == std::vector<std::int64_t>{2, 2});
  CHECK(list_of(basic[0]) == List{"abc", "com", "abc", "net"});
  CHECK(ints_of(basic[1]) == std::vector<std::int64_t>{2, 2});
  const auto limited = split({"hello world", "def.net"}, ".", 2);
  CHECK(list_of(limited[0]) == List{"hello world", "", "def", "net"});
  CHECK(ints_of(limited[1]) == std::vector<std::int64_t>{1, 2});
  const auto blanks = split({"hello world !", "  hello   world !"}, {}, {});
  CHECK(list_of(blanks[0]) == List{"hello", "world", "!", "hello", "world", "!"});
  const auto none = split({"  ", " "}, {}, {});
  CHECK(none[0].shape() == std::vector<std::int64_t>{2, 0});
  CHECK(ints_of(none[1]) == std::vector<std::int64_t>{0, 0});
  std::string many;
  for (int i = 0; i < 256; ++i) many += ",";
  CHECK_THROWS_WITH_AS(split({many}, ",", {}), doctest::Contains("wanted at most 256 parts of element 0, found 257"),
                       CompileError);
}

TEST_CASE("RegexFullMatch matches whole strings") {
  Writer w(20);
  w.input("x", {2, 2}, TensorProto::STRING).output("y");
  test::set_text(w.node("RegexFullMatch", {"x"}, {"y"}), "pattern", R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))");
  const auto found = run(w, {texts({2, 2}, {"account@gmail.com", "account@hotmail.com", "not email", "account@yahoo.com"})});
  CHECK(ints_of(found[0]) == std::vector<std::int64_t>{1, 0, 0, 1});
}

TEST_CASE("Cast and CastLike between numbers and strings") {
  for (const int type : {TensorProto::FLOAT, TensorProto::DOUBLE, TensorProto::INT64, TensorProto::BOOL}) {
    Writer w(17);
    w.input("x", {3}, TensorProto::STRING).input("like", {1}, type).output("y").output("z");
    w.node("CastLike", {"x", "like"}, {"y"});
    test::set_int(w.node("Cast", {"y"}, {"z"}), "to", TensorProto::STRING);
    HostTensor like(type == TensorProto::FLOAT    ? DType::f32
                    : type == TensorProto::DOUBLE ? DType::f64
                    : type == TensorProto::INT64  ? DType::i64
                                                  : DType::boolean,
                    {1});
    const auto found = run(w, {texts({3}, {"1", " 0", "+1.5e0"}), like});
    const bool real = is_float(like.dtype()), boolean = like.dtype() == DType::boolean;
    CHECK(list_of(found[1]) == (real      ? List{"1.0", "0.0", "1.5"}
                                : boolean ? List{"True", "False", "True"}
                                          : List{"1", "0", "1"}));
  }
}

TEST_CASE("strings are moved, compared and made by constants") {
  Writer w(20);
  w.input("x", {2, 2}, TensorProto::STRING).output("t").output("same").output("g").output("all").output("which");
  set_texts(w.node("Constant", {}, {"pair"}), "value_strings", {"b", "b"});
  test::set_text(w.node("Constant", {}, {"one"}), "value_string", "a");
  test::set_list(w.node("Transpose", {"x"}, {"t"}), "perm", {1, 0});
  w.node("Equal", {"x", "one"}, {"same"});
  w.ints("i", {1}, {1});
  test::set_int(w.node("Gather", {"x", "i"}, {"g"}), "axis", 1);
  w.ints("axes", {1}, {0});
  w.node("Unsqueeze", {"pair", "axes"}, {"row"});
  test::set_int(w.node("Concat", {"x", "row"}, {"all"}), "axis", 0);
  w.node("Where", {"same", "pair", "x"}, {"which"});
  const auto found = run(w, {texts({2, 2}, {"a", "c", "", "a"})});
  CHECK(list_of(found[0]) == List{"a", "", "c", "a"});
  CHECK(ints_of(found[1]) == std::vector<std::int64_t>{1, 0, 0, 1});
  CHECK(list_of(found[2]) == List{"c", "a"});
  CHECK(list_of(found[3]) == List{"a", "c", "", "a", "b", "b"});
  CHECK(list_of(found[4]) == List{"b", "c", "", "b"});
}

TEST_CASE("TfIdfVectorizer counts n-grams of strings") {
  Writer w(9);
  w.input("x", {6}, TensorProto::STRING).output("y");
  auto& node = w.node("TfIdfVectorizer", {"x"}, {"y"});
  test::set_text(node, "mode", "TF");
  test::set_int(node, "min_gram_length", 1);
  test::set_int(node, "max_gram_length", 2);
  test::set_int(node, "max_skip_count", 0);
  test::set_list(node, "ngram_counts", {0, 2});
  test::set_list(node, "ngram_indexes", {2, 0, 1});
  set_texts(node, "pool_strings", {"a", "b", "a", "b"});
  const auto found = run(w, {texts({6}, {"a", "b", "a", "c", "a", "b"})});
  CHECK(ints_of(found[0]) == std::vector<std::int64_t>{2, 2, 3});
}

TEST_CASE("sequences and branches hold strings") {
  Writer w(17);
  w.input("a", {2}, TensorProto::STRING).input("b", {1}, TensorProto::STRING).output("y");
  w.node("SequenceConstruct", {"a", "b"}, {"s"});
  test::set_int(w.node("ConcatFromSequence", {"s"}, {"y"}), "axis", 0);
  CHECK(list_of(run(w, {texts({2}, {"1", "2"}), texts({1}, {"3"})})[0]) == List{"1", "2", "3"});
}

}  // namespace oclc::strings_test

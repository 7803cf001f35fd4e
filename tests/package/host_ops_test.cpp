#include "runtime/package/host_ops.h"

#include <doctest/doctest.h>

#include <clocale>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

#include "runtime/package/text/number_text.h"
#include "runtime/package/text/regex.h"
#include "runtime/package/text/unicode.h"

namespace oclc::package {
namespace {

using plan::DType;

template <class T>
std::string text(DType dtype, T value) {
  return number_text(dtype, reinterpret_cast<const std::byte*>(&value));
}

template <class T>
std::optional<T> number(DType dtype, std::string_view given) {
  T value{};
  return parse_number(dtype, given, reinterpret_cast<std::byte*>(&value)) ? std::optional(value) : std::nullopt;
}

std::vector<HostValue> run(const std::string& name, const HostSettings& settings, const std::vector<HostValue>& inputs,
                           std::vector<HostValue> outputs) {
  const HostOp* op = find_host_op(name);
  REQUIRE(op);
  REQUIRE(problem_of(*op, settings) == "");
  op->run(settings, inputs, outputs);
  return outputs;
}

HostValue texts(std::vector<std::int64_t> shape, std::vector<std::string> values) {
  return {DType::string_, std::move(shape), {}, std::move(values)};
}

HostValue room(DType dtype, std::vector<std::int64_t> shape, std::size_t size) {
  HostValue value{dtype, std::move(shape), {}, {}};
  if (dtype == DType::string_)
    value.texts.resize(value.elements());
  else
    value.data.resize(value.elements() * size);
  return value;
}

std::int64_t int_of(const HostValue& value, std::size_t i) {
  std::int64_t n = 0;
  std::memcpy(&n, value.data.data() + i * sizeof n, sizeof n);
  return n;
}

TEST_CASE("numbers are written as numpy writes them") {
  CHECK(text(DType::f32, 0.97676112f) == "0.9767611");
  CHECK(text(DType::f32, 0.1f) == "0.1");
  CHECK(text(DType::f32, 1.0f) == "1.0");
  CHECK(text(DType::f32, -0.0f) == "-0.0");
  CHECK(text(DType::f32, 123456789.0f) == "123456790.0");
  CHECK(text(DType::f32, 1e-4f) == "0.0001");
  CHECK(text(DType::f32, 1e-5f) == "1e-05");
  CHECK(text(DType::f32, 1.5e-5f) == "1.5e-05");
  CHECK(text(DType::f32, 1e16f) == "1e+16");
  CHECK(text(DType::f32, 9e15f) == "9000000000000000.0");
  CHECK(text(DType::f32, std::numeric_limits<float>::max()) == "3.4028235e+38");
  CHECK(text(DType::f64, 0.1) == "0.1");
  CHECK(text(DType::f64, 1e300) == "1e+300");
  CHECK(text(DType::f64, -1234.5) == "-1234.5");
  CHECK(text(DType::f32, NAN) == "nan");
  CHECK(text(DType::f32, -INFINITY) == "-inf");
  CHECK(text(DType::f16, std::uint16_t{0x2e66}) == "0.1");
  CHECK(text(DType::f16, std::uint16_t{0x7bff}) == "65500.0");
  CHECK(text(DType::f16, std::uint16_t{1}) == "6e-08");
  CHECK(text(DType::bf16, std::uint16_t{0x3dcd}) == "0.1");
  CHECK(text(DType::i8, std::int8_t{-128}) == "-128");
  CHECK(text(DType::u64, UINT64_MAX) == "18446744073709551615");
  CHECK(text(DType::bool_, std::uint8_t{1}) == "True");
}

TEST_CASE("texts are read as numbers, or refused") {
  CHECK(number<float>(DType::f32, "0.47892547") == 0.47892547f);
  CHECK(number<float>(DType::f32, " +1e-5\n") == 1e-5f);
  CHECK(number<float>(DType::f32, "1E8") == 1e8f);
  CHECK(std::isnan(*number<float>(DType::f32, "NaN")));
  CHECK(number<float>(DType::f32, "INF") == INFINITY);
  CHECK(number<float>(DType::f32, "+INF") == INFINITY);
  CHECK(number<float>(DType::f32, "-Infinity") == -INFINITY);
  CHECK(number<float>(DType::f32, "1e400") == INFINITY);
  CHECK(number<float>(DType::f32, "-1e39") == -INFINITY);
  CHECK(number<float>(DType::f32, "1e-60") == 0.0f);
  CHECK(number<double>(DType::f64, "1e-400") == 0.0);
  CHECK(number<std::uint16_t>(DType::f16, "0.1") == std::uint16_t{0x2e66});
  CHECK(number<std::uint16_t>(DType::f16, "70000") == std::uint16_t{0x7c00});
  CHECK(number<std::uint16_t>(DType::bf16, "1") == std::uint16_t{0x3f80});
  CHECK(number<std::int32_t>(DType::i32, "100.5") == 100);
  CHECK(number<std::int64_t>(DType::i64, "9223372036854775807") == INT64_MAX);
  CHECK(number<std::uint8_t>(DType::bool_, "TRUE") == std::uint8_t{1});
  CHECK(number<std::uint8_t>(DType::bool_, "0") == std::uint8_t{0});
  for (const char* wrong : {"", " ", "one", "1,5", "0x10", "1.5x", "++1", "+-1", "--1", "1 2"}) {
    CAPTURE(wrong);
    CHECK_FALSE(number<float>(DType::f32, wrong));
    CHECK_FALSE(number<std::int32_t>(DType::i32, wrong));
  }
  CHECK_FALSE(number<std::uint8_t>(DType::u8, "256"));
  CHECK_FALSE(number<std::uint8_t>(DType::u8, "-1"));
  CHECK_FALSE(number<std::int64_t>(DType::i64, "1e30"));
  CHECK_FALSE(number<std::int64_t>(DType::i64, "nan"));
}

TEST_CASE("case 108: every number reads back as itself, in every locale") {
  const char* before = std::setlocale(LC_ALL, "de_DE.UTF-8");
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const auto back = number<float>(DType::f32, text(DType::f32, value));
    REQUIRE(back == value);
  }
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto narrow = static_cast<std::uint16_t>(bits);
      const std::string written = text(dtype, narrow);
      if (written == "nan") continue;
      REQUIRE(number<std::uint16_t>(dtype, written) == narrow);
    }
  }
  if (before) std::setlocale(LC_ALL, "C");
}

TEST_CASE("letters change their case beyond ASCII, other bytes stay") {
  CHECK(upper("monday") == "MONDAY");
  CHECK(lower("ÄÖÜ ŠŽ ΑΩ ЖЯ Ա Ÿ") == "äöü šž αω жя ա ÿ");
  CHECK(upper("äöü šž αως жя ա ÿ") == "ÄÖÜ ŠŽ ΑΩΣ ЖЯ Ա Ÿ");
  CHECK(upper("ß × ÷ 1 日本 😀") == "ß × ÷ 1 日本 😀");
  CHECK(upper("a\xff\xc3") == "A\xff\xc3");
  for (char32_t c = 0; c < 0x3000; ++c) {
    if (to_lower(c) != c) REQUIRE(to_upper(to_lower(c)) == c);
  }
}

TEST_CASE("string_normalize drops stop words and counts what is left") {
  const HostValue days = texts({4}, {"monday", "Tuesday", "WEDNESDAY", "Monday"});
  const std::vector<HostValue> outputs = {room(DType::string_, {4}, 0), room(DType::i64, {1}, 8)};
  const auto kept = run("string_normalize", {{1, 2}, {"monday"}}, {days}, outputs);
  CHECK(kept[0].texts == std::vector<std::string>{"TUESDAY", "WEDNESDAY", "MONDAY", ""});
  CHECK(int_of(kept[1], 0) == 3);
  const auto any_case = run("string_normalize", {{0, 1}, {"MONDAY"}}, {days}, outputs);
  CHECK(any_case[0].texts == std::vector<std::string>{"tuesday", "wednesday", "", ""});
  CHECK(int_of(any_case[1], 0) == 2);
  const auto none = run("string_normalize", {{0, 0}, {"monday", "tuesday", "wednesday"}}, {days}, outputs);
  CHECK(int_of(none[1], 0) == 1);
  CHECK(none[0].texts[0] == "");
}

TEST_CASE("string_concat broadcasts") {
  const auto joined =
      run("string_concat", {}, {texts({2, 1}, {"a", "b"}), texts({3}, {"x", "y", ""})}, {room(DType::string_, {2, 3}, 0)});
  CHECK(joined[0].texts == std::vector<std::string>{"ax", "ay", "a", "bx", "by", "b"});
  const HostOp& op = *find_host_op("string_concat");
  std::vector<HostValue> outputs = {room(DType::string_, {2}, 0)};
  const std::vector<HostValue> inputs = {texts({3}, {"a", "b", "c"}), texts({2}, {"x", "y"})};
  CHECK_THROWS_WITH_AS(op.run({}, inputs, outputs), "wanted operands that broadcast to the result's shape", HostOpError);
}

TEST_CASE("string_split cuts as Python's split does") {
  const auto split = [](const std::string& value, const std::string& delimiter, std::int64_t most) {
    const auto out = run("string_split", {{most}, {delimiter}}, {texts({1}, {value})},
                         {room(DType::string_, {1, 8}, 0), room(DType::i64, {1}, 8), room(DType::i64, {1}, 8)});
    CHECK(int_of(out[1], 0) == int_of(out[2], 0));
    return std::vector<std::string>(out[0].texts.begin(), out[0].texts.begin() + int_of(out[1], 0));
  };
  using List = std::vector<std::string>;
  CHECK(split("a,b,,c", ",", -1) == List{"a", "b", "", "c"});
  CHECK(split("a,b,,c", ",", 1) == List{"a", "b,,c"});
  CHECK(split(",", ",", -1) == List{"", ""});
  CHECK(split("", ",", -1) == List{""});
  CHECK(split("a--b-c", "--", -1) == List{"a", "b-c"});
  CHECK(split("  hello \t world  ", "", -1) == List{"hello", "world"});
  CHECK(split("  a b  c d ", "", 2) == List{"a", "b", "c d"});
  CHECK(split("   ", "", -1).empty());
  CHECK(split("a b", "", 0) == List{"a b"});
  const HostOp& op = *find_host_op("string_split");
  std::vector<HostValue> outputs = {room(DType::string_, {1, 2}, 0), room(DType::i64, {1}, 8), room(DType::i64, {1}, 8)};
  const std::vector<HostValue> inputs = {texts({1}, {"a,b,c"})};
  CHECK_THROWS_WITH_AS(op.run({{-1}, {","}}, inputs, outputs), "wanted at most 2 parts of element 0, found 3", HostOpError);
}

TEST_CASE("a text that is no number is named") {
  const HostOp& op = *find_host_op("string_to_number");
  std::vector<HostValue> outputs = {room(DType::f32, {2}, 4)};
  const std::vector<HostValue> inputs = {texts({2}, {"1", "one"})};
  CHECK_THROWS_WITH_AS(op.run({}, inputs, outputs), "wanted a number as element 1, found \"one\"", HostOpError);
}

TEST_CASE("regular expressions match whole texts") {
  const struct {
    const char *pattern, *text;
    bool wanted;
  } kCases[] = {{"a*b", "aaab", true},
                {"a*b", "aaa", false},
                {R"(www\.[\w.-]+\.\bcom\b)", "www.google.com", true},
                {R"(www\.[\w.-]+\.\bcom\b)", "www.google.org", false},
                {R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))", "account@gmail.com", true},
                {R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))", "account@hotmail.com", false},
                {"(?i)straße", "STRAßE", true},
                {"a(?i:b)c", "aBc", true},
                {"a(?i:b)c", "aBC", false},
                {"", "", true},
                {"", "a", false},
                {"(a|ab)(c|bcd)(d*)", "abcd", true},
                {"(a*)*", "aaaa", true},
                {"(a?){20}a{20}", "aaaaaaaaaaaaaaaaaaaa", true},
                {"x{2,3}", "x", false},
                {"x{2,3}", "xxx", true},
                {"x{2,}", "xxxxx", true},
                {"a{,2}", "a{,2}", true},
                {"[^a-c]+", "dé", true},
                {"[]a-]+", "]-a", true},
                {".", "\n", false},
                {"(?s).", "\n", true},
                {"(?m)a$\n^b", "a\nb", true},
                {"a$b", "ab", false},
                {R"(\x{e9}\x41\101)", "éAA", true},
                {"[[:digit:]]{3}|[[:^space:]]", "123", true},
                {R"(\Qa.b\E)", "axb", false},
                {R"(\Qab\E+)", "abbb", true},
                {R"(\Qab\E+)", "abab", false},
                {"((ab)c)+", "abcabc", true},
                {"(?P<year>\\d{4})-(?:\\d\\d)", "2024-07", true},
                {"日.*", "日本語", true},
                {"a+?", "aaa", true},
                {"\\D\\S\\W", "ab-", true},
                {"a\\Bb\\b", "ab", true}};
  for (const auto& c : kCases) {
    CAPTURE(c.pattern);
    CAPTURE(c.text);
    CHECK(Regex(c.pattern).matches(c.text) == c.wanted);
  }
}

TEST_CASE("patterns that RE2 refuses are refused with their place") {
  CHECK_THROWS_WITH(Regex("("), "a missing ) at byte 1 of the pattern");
  CHECK_THROWS_WITH(Regex("a)"), "an unmatched ) at byte 1 of the pattern");
  CHECK_THROWS_WITH(Regex("[a"), "a missing ] at byte 2 of the pattern");
  CHECK_THROWS_WITH(Regex("*a"), "a repetition of nothing at byte 0 of the pattern");
  CHECK_THROWS_WITH(Regex("a**"), "a repetition of a repetition at byte 2 of the pattern");
  CHECK_THROWS_WITH(Regex("(a)\\1"), "a back reference, which RE2 does not have at byte 4 of the pattern");
  CHECK_THROWS_WITH(Regex("\\pL"), "the unknown escape \\p at byte 1 of the pattern");
  CHECK_THROWS_WITH(Regex("a{3,2}"), "a wrong number of repetitions at byte 6 of the pattern");
  CHECK_THROWS_WITH(Regex("((a{1000}){1000}){1000}"), "too large an expression at byte 16 of the pattern");
  for (const char* wrong : {"(?=a)", "(?<=a)", "(?P<>a)", "a\\", "[b-a]", "\\x{110000}", "[[:what:]]", "(?i", "\xff"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(Regex{wrong}, RegexError);
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "(";
  CHECK_THROWS_AS(Regex{deep}, RegexError);
}

TEST_CASE("patterns that make others exponential take linear time") {
  const std::string many(200000, 'a');
  CHECK(Regex("(a|aa)*b?").matches(many));
  CHECK_FALSE(Regex("(a*)*b").matches(many));
  CHECK_FALSE(Regex("((a|a)+)+$b").matches(many));
}

TEST_CASE("random patterns and texts never crash") {
  std::mt19937 random(1);
  const std::string alphabet = "ab()[]{}|*+?.^$\\-,12dwsQEx:i<>P\xc3\xa9";
  int legal = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string pattern, given;
    for (auto i = random() % 12; i > 0; --i) pattern += alphabet[random() % alphabet.size()];
    for (auto i = random() % 12; i > 0; --i) given += alphabet[random() % alphabet.size()];
    try {
      Regex(pattern).matches(given);
      ++legal;
    } catch (const RegexError&) {
    }
  }
  CHECK(legal > 1000);
}

TEST_CASE("settings of operators of the host are checked") {
  const auto problem = [](const char* name, const HostSettings& s) { return problem_of(*find_host_op(name), s); };
  CHECK(problem("string_normalize", {{1}, {}}) == "it has 2 integer settings, found 1");
  CHECK(problem("string_normalize", {{2, 0}, {}}) == "case_sensitive is 0 or 1");
  CHECK(problem("string_normalize", {{0, 3}, {}}) == "change is 0, 1 or 2");
  CHECK(problem("string_concat", {{}, {"x"}}) == "it has no texts as settings");
  CHECK(problem("string_split", {{-2}, {","}}) == "most is -1 or more");
  CHECK(problem("string_split", {{-1}, {}}) == "there is one delimiter");
  CHECK(problem("regex_full_match", {{}, {}}) == "there is one pattern");
  CHECK(problem("regex_full_match", {{}, {"("}}) == "a missing ) at byte 1 of the pattern");
  CHECK(find_host_op("no_such") == nullptr);
}

}  // namespace
}  // namespace oclc::package

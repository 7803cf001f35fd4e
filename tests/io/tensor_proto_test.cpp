#include "tools/io/tensor_proto.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

using namespace oclc;
using namespace oclc::io;

namespace tensor_proto_test {

std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text += static_cast<char>((value & 127) | 128);
  return text + static_cast<char>(value);
}

std::string number(int field, std::uint64_t value) { return varint(static_cast<std::uint64_t>(field) << 3) + varint(value); }
std::string bytes(int field, const std::string& value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<double> values(const std::string& text) {
  const Tensor tensor = parse_tensor_proto(text, "x.pb");
  std::vector<double> list;
  for (std::uint64_t i = 0; i < tensor.elements(); ++i) list.push_back(tensor.at(i));
  return list;
}

std::string error_of(const std::string& text) {
  try {
    parse_tensor_proto(text, "x.pb");
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("tensors of every carrier are read") {
  CHECK(values(number(1, 2) + number(2, 1) + bytes(9, raw<float>({1.5f, -2})) + bytes(8, "x")) == std::vector<double>{1.5, -2});
  CHECK(values(bytes(1, varint(3)) + number(2, 1) + bytes(4, raw<float>({1, 2, 3}))) == std::vector<double>{1, 2, 3});
  CHECK(values(number(1, 2) + number(2, 7) + number(7, 5) + number(7, static_cast<std::uint64_t>(-1))) ==
        std::vector<double>{5, -1});
  CHECK(values(number(2, 6) + number(5, 42)) == std::vector<double>{42});
  CHECK(values(number(1, 2) + number(2, 10) + bytes(5, varint(0x3c00) + varint(0xc000))) == std::vector<double>{1, -2});
  CHECK(values(number(1, 1) + number(2, 11) + bytes(10, raw<double>({0.1}))) == std::vector<double>{0.1});
  CHECK(values(number(1, 2) + number(2, 9) + bytes(5, varint(0) + varint(1))) == std::vector<double>{0, 1});
  CHECK(values(number(1, 1) + number(2, 13) + bytes(11, varint(std::uint64_t{1} << 40))) ==
        std::vector<double>{1099511627776.0});
  CHECK(values(number(1, 0) + number(2, 1)).empty());
  CHECK(parse_tensor_proto(number(2, 1) + bytes(4, raw<float>({1})) + bytes(8, "name") + bytes(12, "doc"), "x.pb").name ==
        "name");
}

TEST_CASE("strings are read, and copies share them") {
  Tensor tensor =
      parse_tensor_proto(number(1, 2) + number(2, 8) + bytes(6, "") + bytes(6, "a longer text than fits in place"), "x.pb");
  const Tensor copy = tensor;
  tensor = Tensor();
  REQUIRE(copy.elements() == 2);
  CHECK(std::string(copy.text_at(0)).empty());
  CHECK(std::string(copy.text_at(1)) == "a longer text than fits in place");
}

TEST_CASE("tensors that cannot be read are refused by name") {
  CHECK(error_of(number(1, 2) + number(2, 1) + bytes(9, "1234")) == "x.pb: its shape needs 8 bytes, found 4");
  CHECK(error_of(number(1, 2) + number(2, 8) + bytes(6, "text")) == "x.pb: its shape needs 16 bytes, found 8");
  CHECK(error_of(number(2, 8) + bytes(9, "text")) == "x.pb: its strings are not in string_data");
  CHECK(error_of(number(2, 8) + bytes(6, std::string("a\0b", 3))) == "x.pb: a string contains a NUL");
  CHECK(error_of(number(2, 1) + bytes(6, "text")) == "x.pb: it holds strings where its element type is float32");
  CHECK(error_of(number(2, 99)) == "x.pb: ONNX element type 99 is not supported");
  CHECK(error_of("") == "x.pb: ONNX element type 0 is not supported");
  CHECK(error_of(number(2, 1) + bytes(13, "")) == "x.pb: external data are not supported here");
  CHECK(error_of(number(2, 1) + bytes(3, "")) == "x.pb: segmented tensors are not supported");
  CHECK(error_of(number(2, 1) + bytes(9, "1234") + bytes(4, "1234")) == "x.pb: it has its data in several fields");
  CHECK(error_of(number(1, static_cast<std::uint64_t>(-5)) + number(2, 1)) == "x.pb: dimension -5 is negative");
  CHECK(error_of(std::string(11, '\xff')) == "x.pb: not an ONNX tensor: an integer longer than 10 bytes");
  CHECK(error_of("\x4a\xff\xff\xff\x7f") == "x.pb: not an ONNX tensor: a field reaches past the end");
  CHECK(error_of("\x08") == "x.pb: not an ONNX tensor: truncated");
  CHECK(error_of("\x0b") == "x.pb: not an ONNX tensor: a field has the wrong type");
  CHECK(error_of("\xfb\x01") == "x.pb: not an ONNX tensor: unknown wire type 3");
}

TEST_CASE("damaged tensor files never crash") {
  const std::string good = number(1, 2) + number(2, 1) + bytes(9, raw<float>({1.5f, -2})) + bytes(8, "x");
  std::mt19937 random(9);
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits)
      text[random() % text.size()] = static_cast<char>(random());
    try {
      parse_tensor_proto(text, "x.pb");
    } catch (const FileError&) {
    }
  }
}

}  // namespace tensor_proto_test

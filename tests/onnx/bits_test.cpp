// Integers of 2 bits, powers of two as elements, and BitCast in models, from the specification's text.
#include "tests/onnx/narrow_types.h"

namespace oclc::narrow_types_test {

TEST_CASE("Cast to 2-bit integers rounds and keeps the low bits") {
  const HostTensor x = list(DType::i32, {0, 1, 2, 3, 4, -1, -2, -3, 1000003});
  is(run(cast_model(TensorProto::INT32, kInt2, 9), {x}), {0, 1, -2, -1, 0, -1, -2, 1, -1});
  is(run(cast_model(TensorProto::INT32, kUint2, 9), {x}), {0, 1, 2, 3, 0, 3, 2, 1, 3});
  is(run(cast_model(TensorProto::FLOAT, kInt2, 3), {list(DType::f32, {0.75, -1.75, 5.5})}), {1, -2, -2});
}

Writer power_model(const std::string& mode, bool saturates, std::int64_t count, int from = TensorProto::FLOAT) {
  Writer w(24);
  w.input("x", {count}, from).output("y");
  auto& node = w.node("Cast", {"x"}, {"y"});
  test::set_int(node, "to", kE8M0);
  test::set_int(node, "saturate", saturates ? 1 : 0);
  test::set_text(node, "round_mode", mode);
  return w;
}

TEST_CASE("Cast to powers of two rounds as it says, with and without saturation") {
  const double least = 0x1p-127, most = 0x1p127;
  const HostTensor x =
      list(DType::f32, {0, 0.124, 0.25, 1.1, 1.5, 1.75, 3, kInf, kNaN, 0x1.8p127, 0x1p-127, 0x1.4p-127, 0x1p-140});
  const auto to = [&](const std::string& mode, bool saturates) { return run(power_model(mode, saturates, 13), {x}); };
  is(to("up", true), {least, 0.125, 0.25, 2, 2, 2, 4, most, kNaN, most, least, 2 * least, least});
  is(to("down", true), {least, 0.0625, 0.25, 1, 1, 1, 2, most, kNaN, most, least, least, least});
  is(to("nearest", true), {least, 0.125, 0.25, 1, 2, 2, 4, most, kNaN, most, least, least, least});
  is(to("nearest", false), {kNaN, 0.125, 0.25, 1, 2, 2, 4, kNaN, kNaN, kNaN, least, least, kNaN});
  is(run(power_model("up", true, 3, TensorProto::FLOAT16), {list(DType::f16, {3, 0.25, 6})}), {4, 0.25, 8});
  CHECK_FAILS(test::failure_of(power_model("sideways", true, 3)),
              "node 'Cast_0' (Cast): wanted round_mode up, down or nearest, found sideways", 3);
}

TEST_CASE("Cast from every power of two gives it") {
  const HostTensor x = every_code({kE8M0, DType::f8e8m0, 256}), y = run(cast_model(kE8M0, TensorProto::FLOAT, 256), {x});
  for (int i = 0; i < 255; ++i) CHECK(y.at(i) == std::ldexp(1.0, i - 127));
  CHECK(std::isnan(y.at(255)));
}

TEST_CASE("A scale that is a power of two scales in the type of what it scales") {
  Writer w(24);
  w.input("x", {4}, kInt4).input("s", {}, kE8M0).output("y");
  test::set_int(w.node("DequantizeLinear", {"x", "s"}, {"y"}), "output_dtype", TensorProto::FLOAT);
  is(run(w, {list(DType::i4, {-8, -1, 0, 7}), list(DType::f8e8m0, {0.5}, Dims(1, 1)).reshaped({})}), {-4, -0.5, 0, 3.5});
  Writer q(24);
  q.input("x", {4}).input("s", {}, kE8M0).output("y");
  test::set_int(q.node("QuantizeLinear", {"x", "s"}, {"y"}), "output_dtype", kE2M1);
  is(run(q, {list(DType::f32, {1, 2.5, -100, 0}), list(DType::f8e8m0, {2}, Dims(1, 1)).reshaped({})}), {0.5, 1, -6, 0});
}

TEST_CASE("NaN as a float of 4 bits is the zero with a sign from opset 24 on") {
  for (const int opset : {23, 25}) {
    Writer w(opset);
    w.input("x", {2}).output("y");
    test::set_int(w.node("Cast", {"x"}, {"y"}), "to", kE2M1);
    is(run(w, {list(DType::f32, {kNaN, 2.6})}), {opset == 23 ? 6 : -0.0, 3});
  }
}

Writer bits_model(int from, int to, std::int64_t count) {
  Writer w(26);
  w.input("x", {count}, from).output("y");
  test::set_int(w.node("BitCast", {"x"}, {"y"}, "n"), "to", to);
  return w;
}

TEST_CASE("BitCast reads the bits of one type as another, and back") {
  const HostTensor x = list(DType::f32, {1, -0.0, kInf, -2.5});
  is(run(bits_model(TensorProto::FLOAT, TensorProto::INT32, 4), {x}), {0x3f800000, -2147483648.0, 0x7f800000, -1071644672});
  is(run(bits_model(TensorProto::UINT32, TensorProto::FLOAT, 2), {list(DType::u32, {0x3f800000, 0xc0200000})}), {1, -2.5});
  is(run(bits_model(TensorProto::DOUBLE, TensorProto::INT64, 2), {list(DType::f64, {1, -0.0})}),
     {4607182418800017408.0, -9223372036854775808.0});
  is(run(bits_model(TensorProto::FLOAT16, TensorProto::INT16, 3), {list(DType::f16, {1, -2, 0})}), {0x3c00, -16384, 0});
  is(run(bits_model(TensorProto::INT16, TensorProto::BFLOAT16, 2), {list(DType::i16, {0x3f80, -16256})}), {1, -4});
  is(run(bits_model(TensorProto::BOOL, TensorProto::UINT8, 2), {list(DType::boolean, {1, 0})}), {1, 0});
  is(run(bits_model(TensorProto::UINT8, TensorProto::BOOL, 3), {list(DType::u8, {0, 1, 255})}), {0, 1, 1});
  is(run(bits_model(TensorProto::UINT8, kE4M3FN, 2), {list(DType::u8, {0x38, 0xc8})}), {1, -4});
  is(run(bits_model(kInt4, kUint4, 3), {list(DType::i4, {-1, 7, -8})}), {15, 7, 8});
  is(run(bits_model(kInt4, kE2M1, 3), {list(DType::i4, {-1, 1, -8})}), {-6, 0.5, -0.0});
  is(run(bits_model(kE2M1, kInt4, 3), {list(DType::f4e2m1, {-6, 0.5, 6})}), {-1, 1, 7});
  is(run(bits_model(kUint2, kInt2, 4), {list(DType::u2, {0, 1, 2, 3})}), {0, 1, -2, -1});
}

TEST_CASE("BitCast inside of a chain keeps what is computed around it") {
  Writer w(26);
  w.input("x", {5}).output("y");
  w.floats("two", {}, {2});
  w.node("Mul", {"x", "two"}, {"d"});
  test::set_int(w.node("BitCast", {"d"}, {"b"}), "to", TensorProto::INT32);
  test::set_int(w.node("Cast", {"b"}, {"c"}), "to", TensorProto::DOUBLE);
  test::set_int(w.node("Cast", {"c"}, {"y"}), "to", TensorProto::FLOAT);
  is(run(w, {list(DType::f32, {0.5, 1, -0.5, 0, 2})}), {1065353216, 1073741824, -1082130432, 0, 1082130432});
}

TEST_CASE("BitCast refuses types of different widths, and texts") {
  CHECK_FAILS(test::failure_of(bits_model(TensorProto::FLOAT, TensorProto::INT64, 2)),
              "node 'n' (BitCast): wanted element types of one width, found f32 of 32 bits and i64 of 64", 3);
  CHECK_FAILS(test::failure_of(bits_model(TensorProto::UINT8, kUint4, 2)),
              "node 'n' (BitCast): wanted element types of one width, found u8 of 8 bits and u4 of 4", 3);
  CHECK_FAILS(test::failure_of(bits_model(TensorProto::INT32, TensorProto::STRING, 2)),
              "node 'n' (BitCast): wanted a type of numbers, found STRING", 3);
  CHECK(test::failure_of(bits_model(TensorProto::STRING, TensorProto::INT32, 2)).text.find("wanted numbers as input 0") !=
        std::string::npos);
}

TEST_CASE("Data of 2 bits lie four in a byte, the first in the lowest") {
  for (const bool raw : {true, false}) {
    Writer w(25);
    w.output("y");
    auto& t = *w.graph().add_initializer();
    t.set_name("w");
    t.set_data_type(kInt2);
    t.add_dims(5);
    if (raw) {
      t.set_raw_data(std::string("\xe4\x02", 2));
    } else {
      for (const int part : {0xe4, 0x02}) t.add_int32_data(part);
    }
    test::set_int(w.node("Cast", {"w"}, {"y"}), "to", TensorProto::FLOAT);
    is(run(w, {}), {0, 1, -2, -1, -2});
  }
  Writer odd(25);
  odd.output("y");
  auto& t = *odd.graph().add_initializer();
  t.set_name("w");
  t.set_data_type(kUint2);
  t.add_dims(5);
  t.set_raw_data(std::string(3, '\0'));
  test::set_int(odd.node("Cast", {"w"}, {"y"}), "to", TensorProto::FLOAT);
  CHECK_FAILS(test::failure_of(odd), "wanted initializer 'w': 2 bytes of raw_data for UINT2 [5], found 3", 3);
}

TEST_CASE("QuantizeLinear to 2 bits saturates, and back") {
  Writer w(25);
  w.input("x", {6}).output("y");
  w.floats("s", {}, {0.5});
  test::set_int(w.node("QuantizeLinear", {"x", "s"}, {"q"}), "output_dtype", kInt2);
  w.node("DequantizeLinear", {"q", "s"}, {"y"});
  is(run(w, {list(DType::f32, {0, 0.5, 0.74, 9, -1, -7})}), {0, 0.5, 0.5, 0.5, -1, -1});
}

}  // namespace oclc::narrow_types_test

// Floats of 8 and 4 bits and integers of 4 and 2 in models, from the specification's text: its tables of conversions, packed
// data, quantisation by blocks, and what only moves them. Reference and device must give the same bytes.
#include "tests/onnx/narrow_types.h"

#include <algorithm>

namespace oclc::narrow_types_test {

TEST_CASE("Cast to 8-bit floats: the table of special values") {
  const std::vector<double> given{0, -0.0, kNaN, kInf, -kInf, 1e6, -1e6, 464, 465, 248, 61439, 61440, 1, -1.5};
  const HostTensor x = list(DType::f32, given);
  const auto to = [&](int type, bool saturates) {
    return run(cast_model(TensorProto::FLOAT, type, x.elements(), saturates), {x});
  };
  is(to(kE4M3FN, true), {0, -0.0, kNaN, 448, -448, 448, -448, 448, 448, 256, 448, 448, 1, -1.5});
  is(to(kE4M3FN, false), {0, -0.0, kNaN, kNaN, kNaN, kNaN, kNaN, 448, kNaN, 256, kNaN, kNaN, 1, -1.5});
  is(to(kE4M3FNUZ, true), {0, 0, kNaN, 240, -240, 240, -240, 240, 240, 240, 240, 240, 1, -1.5});
  is(to(kE4M3FNUZ, false), {0, 0, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, 1, -1.5});
  is(to(kE5M2, true), {0, -0.0, kNaN, 57344, -57344, 57344, -57344, 448, 448, 256, 57344, 57344, 1, -1.5});
  is(to(kE5M2, false), {0, -0.0, kNaN, kInf, -kInf, kInf, -kInf, 448, 448, 256, 57344, kInf, 1, -1.5});
  is(to(kE5M2FNUZ, true), {0, 0, kNaN, 57344, -57344, 57344, -57344, 448, 448, 256, 57344, 57344, 1, -1.5});
  is(to(kE5M2FNUZ, false), {0, 0, kNaN, kNaN, kNaN, kNaN, kNaN, 448, 448, 256, 57344, kNaN, 1, -1.5});
}

TEST_CASE("Cast from every code to other types, and back") {
  for (const Type& type : kTypes) {
    const HostTensor x = every_code(type);
    for (const int other : {TensorProto::FLOAT, TensorProto::FLOAT16, TensorProto::DOUBLE}) {
      const HostTensor y = run(cast_model(type.number, other, type.codes), {x});
      for (std::int64_t i = 0; i < type.codes; ++i) {
        if (!std::isnan(x.at(i))) CHECK(y.at(i) == x.at(i));
      }
      const HostTensor back = run(cast_model(other, type.number, type.codes, false), {y});
      for (std::int64_t i = 0; i < type.codes; ++i) {
        if (!std::isnan(x.at(i))) CHECK(back.data()[i] == x.data()[i]);
      }
    }
    const HostTensor flags = run(cast_model(type.number, TensorProto::BOOL, type.codes), {x});
    for (std::int64_t i = 0; i < type.codes; ++i) CHECK(flags.int_at(i) == (x.at(i) != 0));
  }
}

TEST_CASE("Cast rounds to the nearest of a type's numbers, also below the normal ones") {
  HostTensor x(DType::f32, {3, 1, 701});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.set(i, std::sin(static_cast<double>(i) * 0.7) * std::exp2(static_cast<double>(i % 41) - 24));
  for (const Type& type : kTypes) {
    if (!is_narrow_float(type.dtype)) continue;
    Writer w(23);
    w.input("x", {3, 1, 701}).output("y");
    test::set_int(w.node("Cast", {"x"}, {"y"}), "to", type.number);
    const HostTensor y = run(w, {x}), codes = every_code(type);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      double nearest = kInf;  // the distance of the nearest
      for (std::int64_t k = 0; k < type.codes; ++k) {
        if (std::isfinite(codes.at(k))) nearest = std::min(nearest, std::fabs(codes.at(k) - x.at(i)));
      }
      CHECK(std::fabs(y.at(i) - x.at(i)) == nearest);
    }
  }
}

TEST_CASE("Cast to 4-bit integers rounds and keeps the low bits") {
  const HostTensor x = list(DType::i32, {0, 7, 8, 15, 16, -1, -8, -9, 200, 1000003});
  is(run(cast_model(TensorProto::INT32, kInt4, 10), {x}), {0, 7, -8, -1, 0, -1, -8, 7, -8, 3});
  is(run(cast_model(TensorProto::INT32, kUint4, 10), {x}), {0, 7, 8, 15, 0, 15, 8, 7, 8, 3});
  is(run(cast_model(TensorProto::FLOAT, kInt4, 4), {list(DType::f32, {1.75, -1.75, 2.5, -8})}), {2, -2, 2, -8});
  is(run(cast_model(kInt4, TensorProto::INT64, 16), {every_code(kTypes[5])}),
     {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7});
  is(run(cast_model(kE2M1, kInt4, 16), {every_code(kTypes[6])}), {0, 0, 1, 2, 2, 3, 4, 6, 0, 0, -1, -2, -2, -3, -4, -6});
}

TEST_CASE("CastLike takes its saturation and type as Cast does") {
  Writer w(19);
  w.input("x", {3}).input("like", {1}, kE4M3FN).output("y");
  test::set_int(w.node("CastLike", {"x", "like"}, {"y"}), "saturate", 0);
  is(run(w, {list(DType::f32, {1e9, -3, 0.1}), list(DType::f8e4m3fn, {1})}), {kNaN, -3, 0.1015625});
}

TEST_CASE("Data of 4 bits lie two in a byte, the first in the low half") {
  for (const bool raw : {true, false}) {
    Writer w(21);
    w.output("y");
    auto& t = *w.graph().add_initializer();
    t.set_name("w");
    t.set_data_type(kInt4);
    t.add_dims(1);
    t.add_dims(5);
    if (raw) {
      t.set_raw_data(std::string("\x7f\x81\x0e", 3));
    } else {
      for (const int pair : {0x7f, 0x81, 0x0e}) t.add_int32_data(pair);
    }
    test::set_int(w.node("Cast", {"w"}, {"y"}), "to", TensorProto::FLOAT);
    is(run(w, {}), {-1, 7, 1, -8, -2});
  }
  Writer odd(21);
  odd.output("y");
  auto& t = *odd.graph().add_initializer();
  t.set_name("w");
  t.set_data_type(kUint4);
  t.add_dims(5);
  t.set_raw_data(std::string(5, '\0'));
  test::set_int(odd.node("Cast", {"w"}, {"y"}), "to", TensorProto::FLOAT);
  CHECK_FAILS(test::failure_of(odd), "wanted initializer 'w': 3 bytes of raw_data for UINT4 [5], found 5", 3);
}

TEST_CASE("QuantizeLinear to 8-bit floats divides, adds the zero point and rounds once") {
  for (const bool saturates : {true, false}) {
    Writer w(19);
    w.input("x", {2, 3}).input("z", {2}, kE4M3FN).output("y");
    w.floats("s", {2}, {2, 0.5});
    auto& node = w.node("QuantizeLinear", {"x", "s", "z"}, {"y"});
    test::set_int(node, "axis", 0);
    test::set_int(node, "saturate", saturates);
    const HostTensor x = list(DType::f32, {2, 900, -1000, 0.3, 1, -0.05}, {2, 3}), zero = list(DType::f8e4m3fn, {0, 1});
    is(run(w, {x, zero}), {1, 448, saturates ? -448 : kNaN, 1.625, 3, 0.875});
  }
}

TEST_CASE("QuantizeLinear to 4 bits saturates, by block and with a zero point") {
  Writer w(21);
  w.input("x", {2, 5}).input("s", {2, 3}).input("z", {2, 3}, kInt4).output("y");
  auto& node = w.node("QuantizeLinear", {"x", "s", "z"}, {"y"});
  test::set_int(node, "axis", -1);
  test::set_int(node, "block_size", 2);
  const HostTensor x = list(DType::f32, {1, 2.5, -20, 3.5, 7, -3, 0, 8, 9, 100}, {2, 5}),
                   s = list(DType::f32, {1, 2, 0.5, 3, 1, 4}, {2, 3}), z = list(DType::i4, {1, -2, 3, 0, -1, 2}, {2, 3});
  // round(x / s) + z: 1, 2 | -10, 2 (of 1.75) | 14; -1, 0 | 8, 9 | 25
  is(run(w, {x, s, z}), {2, 3, -8, 0, 7, -1, 0, 7, 7, 7});
  Writer unsigned_model(21);
  unsigned_model.input("x", {7}).output("y");
  unsigned_model.floats("s", {}, {0.5});
  test::set_int(unsigned_model.node("QuantizeLinear", {"x", "s"}, {"y"}), "output_dtype", kUint4);
  is(run(unsigned_model, {list(DType::f32, {0.25, 0.75, 7.5, 8, -1, 3.25, 1.1})}), {0, 2, 15, 15, 0, 6, 2});
}

TEST_CASE("QuantizeLinear divides in the precision that it names") {
  for (const bool half : {true, false}) {
    Writer w(23);
    w.input("x", {1}).input("s", {}).output("y");
    auto& node = w.node("QuantizeLinear", {"x", "s"}, {"y"});
    test::set_int(node, "output_dtype", TensorProto::INT16);
    if (half) test::set_int(node, "precision", TensorProto::FLOAT16);
    // 4097 is no number of 16 bits.
    is(run(w, {list(DType::f32, {4097}), list(DType::f32, {1}, {}).reshaped({})}), {half ? 4096.0 : 4097.0});
  }
  Writer wrong(21);
  wrong.input("x", {1}).input("s", {}).input("z", {}, TensorProto::INT8).output("y");
  test::set_int(wrong.node("QuantizeLinear", {"x", "s", "z"}, {"y"}, "n"), "output_dtype", TensorProto::UINT8);
  CHECK_FAILS(test::failure_of(wrong), "node 'n' (QuantizeLinear): wanted output_dtype as the zero point has it, found u8", 3);
}

TEST_CASE("DequantizeLinear of 8-bit floats and of 4 bits") {
  Writer f8(19);
  f8.input("x", {4}, kE5M2).output("y");
  f8.floats("s", {}, {2});
  f8.node("DequantizeLinear", {"x", "s"}, {"y"});
  is(run(f8, {list(DType::f8e5m2, {1.5, -57344, 0.25, kInf})}), {3, -114688, 0.5, kInf});
  // Weights of 4 bits in the file, by blocks along the first axis, to 16 bits.
  Writer blocks(23);
  blocks.output("y");
  auto& t = *blocks.graph().add_initializer();
  t.set_name("w");
  t.set_data_type(kUint4);
  t.add_dims(3);
  t.add_dims(2);
  t.set_raw_data(std::string("\x21\x43\xf0", 3));  // 1 2 | 3 4 | 0 15
  blocks.floats("s", {2, 2}, {1, 2, 0.5, 4});
  auto& z = *blocks.graph().add_initializer();
  z.set_name("z");
  z.set_data_type(kUint4);
  z.add_dims(2);
  z.add_dims(2);
  z.set_raw_data(std::string("\x10\x82", 2));  // 0 1 | 2 8
  auto& node = blocks.node("DequantizeLinear", {"w", "s", "z"}, {"y"});
  test::set_int(node, "axis", 0);
  test::set_int(node, "block_size", 2);
  test::set_int(node, "output_dtype", TensorProto::FLOAT16);
  const HostTensor y = run(blocks, {});
  CHECK(y.dtype() == DType::f16);
  is(y, {1, 2, 3, 6, -1, 28});
}

TEST_CASE("Narrow numbers are moved and chosen as they are") {
  for (const Type& type : kTypes) {
    Writer w(21);
    w.input("x", {2, "N", 2}, type.number).output("y");
    w.ints("shape", {3}, {0, 0, -1}).ints("pads", {6}, {0, 1, 0, 1, 0, 0}).ints("axis", {1}, {1});
    w.node("Identity", {"x"}, {"same"});
    w.node("Reshape", {"same", "shape"}, {"r"});
    test::set_list(w.node("Transpose", {"r"}, {"t"}), "perm", {0, 2, 1});
    w.node("Pad", {"t", "pads"}, {"p"});
    w.node("Unsqueeze", {"p", "axis"}, {"u"});
    w.node("Flatten", {"u"}, {"y"});
    const std::int64_t n = 2 * (type.codes / 4);
    const HostTensor all = every_code(type), x = all.reshaped({2, n / 2, 2});
    const HostTensor y = run(w, {x});
    REQUIRE(y.shape() == Dims{3, 3 * (n / 2)});
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const std::int64_t k = i % (n / 2), row = i / (n / 2) % 3, batch = i / (3 * (n / 2));
      const bool inside = batch < 2 && row > 0;
      CHECK(y.data()[i] == (inside ? x.data()[batch * n + k * 2 + row - 1] : std::byte{0}));
    }
  }
  Writer filled(21);
  filled.output("y");
  filled.ints("shape", {2}, {2, 3});
  auto& fill = test::attribute(filled.node("ConstantOfShape", {"shape"}, {"y"}), "value", oclc_onnx::AttributeProto::TENSOR);
  fill.mutable_t()->set_data_type(kE4M3FN);
  fill.mutable_t()->add_dims(1);
  fill.mutable_t()->add_int32_data(0x7e);
  is(run(filled, {}), {448, 448, 448, 448, 448, 448});
}

TEST_CASE("Narrow numbers are not computed with") {
  const auto model = [](const char* op, std::size_t inputs) {
    Writer w(23);
    w.input("x", {2, 2}, kE4M3FN).output("y");
    w.node(op, std::vector<std::string>(inputs, "x"), {"y"}, "n");
    return w;
  };
  CHECK_FAILS(test::failure_of(model("Add", 2)), "node 'n' (Add): wanted numbers, found f8e4m3fn[2, 2] and f8e4m3fn[2, 2]", 3);
  CHECK_FAILS(test::failure_of(model("MatMul", 2)),
              "node 'n' (MatMul): wanted numbers that are computed with, found f8e4m3fn[2, 2]; cast them first", 3);
  CHECK_FAILS(test::failure_of(model("ReduceMax", 1)),
              "node 'n' (ReduceMax): wanted numbers that are computed with, found f8e4m3fn[2, 2]; cast them first", 3);
}

}  // namespace oclc::narrow_types_test

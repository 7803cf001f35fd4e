// What moves elements and changes their types: opsets 19, 21 and 23 brought element types, 18 to 20 some attributes.
#include <algorithm>
#include <cmath>

#include "frontends/onnx/model/tensors.h"
#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

Wanted same_as(const HostTensor& x) {
  return [x](std::int64_t i) { return x.at(i); };
}

AttributeProto& tensor_attribute(NodeProto& node, const std::string& name, DType dtype, const Dims& dims,
                                 const std::string& raw) {
  AttributeProto& a = attribute(node, name, AttributeProto::TENSOR);
  a.mutable_t()->set_data_type(onnx::onnx_type(dtype));
  for (const std::int64_t d : dims) a.mutable_t()->add_dims(d);
  a.mutable_t()->set_raw_data(raw);
  return a;
}

// x, x of one row and of no element: what keeps all elements gives them in the shape.
void kept(Sheet& s, DType dtype) {
  const HostTensor x = noise(dtype, {2, 3, 1, 5}, 1, 5), row = noise(dtype, {1, 7}, 2, 5), none(dtype, {0, 3});
  for (const HostTensor& v : {x, row, none}) {
    const bool awkward = v.elements() == 0;
    s.use("Identity", {s.input(v)}, awkward);
    s.gives(dtype, v.shape(), same_as(v));
    s.use("Shape", {s.input(v)}, awkward);
    s.gives(DType::i64, {static_cast<std::int64_t>(v.shape().size())},
            [v](std::int64_t i) { return static_cast<double>(v.shape()[static_cast<std::size_t>(i)]); });
    s.use("Size", {s.input(v)}, awkward);
    s.gives(DType::i64, {}, of({static_cast<double>(v.elements())}));
    const std::int64_t rank = static_cast<std::int64_t>(v.shape().size());
    if (s.opset >= 21) {
      s.use("Unsqueeze", {s.input(v), s.known_ints({-1, 0})}, awkward);
      Dims wide{1};
      wide.insert(wide.end(), v.shape().begin(), v.shape().end());
      wide.push_back(1);
      s.gives(dtype, wide, same_as(v));
      set_int(s.use("Flatten", {s.input(v)}, awkward), "axis", 1 - rank);
      s.gives(dtype, {v.shape()[0], v.elements() / std::max<std::int64_t>(v.shape()[0], 1) + (awkward ? 3 : 0)}, same_as(v));
      Dims reversed(v.shape().rbegin(), v.shape().rend());
      s.use("Transpose", {s.input(v)}, awkward);
      s.gives(dtype, reversed, [v, reversed](std::int64_t i) {
        Dims index = unflat(i, reversed);
        std::reverse(index.begin(), index.end());
        return v.at(flat(index, v.shape()));
      });
    }
  }
  set_int(s.use("Shape", {s.input(x)}), "start", -2);
  s.gives(DType::i64, {2}, of({1, 5}));
  s.use("Reshape", {s.input(x), s.known_ints({0, -1, 3})});
  s.gives(dtype, {2, 5, 3}, same_as(x));
  s.use("Reshape", {s.input(row), s.known_ints({7, 1, 1})});
  s.gives(dtype, {7, 1, 1}, same_as(row));
  set_int(s.use("Reshape", {s.input(none), s.known_ints({7, 0})}, true), "allowzero", 1);
  s.gives(dtype, {7, 0}, same_as(none));
  if (s.opset >= 21) {
    s.use("Squeeze", {s.input(x), s.known_ints({-2})});
    s.gives(dtype, {2, 3, 5}, same_as(x));
    s.use("Squeeze", {s.input(row)});
    s.gives(dtype, {7}, same_as(row));
    s.use("Squeeze", {s.input(HostTensor(dtype, {0, 1, 1})), s.known_ints({2, 1})}, true);
    s.gives(dtype, {0}, of({}));
  }
}

void pads(Sheet& s, DType dtype) {
  const HostTensor x = noise(dtype, {2, 3}, 1, 5), fill = listed(dtype, {}, {3});
  s.use("Pad", {s.input(x), s.known_ints({0, 1, 1, 2}), s.input(fill)});
  s.gives(dtype, {3, 6}, [x](std::int64_t i) {
    const std::int64_t row = i / 6, column = i % 6 - 1;
    return row < 2 && column >= 0 && column < 3 ? x.at(row * 3 + column) : 3.0;
  });
  s.use("Pad", {s.input(x), s.known_ints({2, -1}), "", s.known_ints({-1})});  // axis 1: two before, the last one off
  s.gives(dtype, {2, 4}, [x](std::int64_t i) { return i % 4 < 2 ? 0.0 : x.at(i / 4 * 3 + i % 4 - 2); });
  const auto modes =
      s.opset >= 19 ? std::vector<std::string>{"reflect", "edge", "wrap"} : std::vector<std::string>{"reflect", "edge"};
  for (const std::string& mode : modes) {
    const HostTensor line = noise(dtype, {1, 3, 1}, 2, 5);
    set_text(s.use("Pad", {s.input(line), s.known_ints({2, 1}), "", s.known_ints({1})}, true), "mode", mode);
    // Of 0 1 2: 2 1 [0 1 2] 1 | 0 0 [0 1 2] 2 | 1 2 [0 1 2] 0
    const std::vector<std::int64_t> from = mode == "reflect" ? Dims{2, 1, 0, 1, 2, 1}
                                           : mode == "edge"  ? Dims{0, 0, 0, 1, 2, 2}
                                                             : Dims{1, 2, 0, 1, 2, 0};
    s.gives(dtype, {1, 6, 1}, [line, from](std::int64_t i) { return line.at(from[static_cast<std::size_t>(i)]); });
  }
}

// From numbers that all types of the opset hold, to each of them and back.
void casts(Sheet& s, DType narrow) {
  const HostTensor x = listed(DType::f32, {2, 1, 3}, {0, 1, 2, 3, 4, 6}), scalar = listed(DType::f32, {}, {2});
  set_int(s.use("Cast", {s.input(x)}), "to", onnx::onnx_type(narrow));
  s.gives(narrow, {2, 1, 3}, same_as(x));
  const HostTensor given = listed(narrow, {7}, {6, 4, 3, 2, 1, 0});
  set_int(s.use("Cast", {s.input(given)}), "to", onnx::onnx_type(DType::bf16));
  s.gives(DType::bf16, {7}, same_as(given));
  set_int(s.use("Cast", {s.input(scalar)}, true), "to", onnx::onnx_type(narrow));
  s.gives(narrow, {}, same_as(scalar));
  s.use("CastLike", {s.input(x), s.input(listed(narrow, {2}, {1}))});
  s.gives(narrow, {2, 1, 3}, same_as(x));
  s.use("CastLike", {s.input(given), s.input(scalar)});
  s.gives(DType::f32, {7}, same_as(given));
  s.use("CastLike", {s.input(HostTensor(DType::f16, {3, 0})), s.input(given)}, true);
  s.gives(narrow, {3, 0}, of({}));
}

void constants(Sheet& s, DType narrow) {
  const HostTensor numbers = listed(narrow, {3}, {1, 2, 3});
  const bool two = narrow == DType::i4 || narrow == DType::u4 || narrow == DType::f4e2m1;  // in a byte
  const std::string raw(reinterpret_cast<const char*>(numbers.data()), 3);
  const std::string pairs{static_cast<char>(raw[0] | raw[1] << 4), raw[2]};
  tensor_attribute(s.use("Constant", {}), "value", narrow, {3}, two ? pairs : raw);
  s.gives(narrow, {3}, of({1, 2, 3}));
  attribute(s.use("Constant", {}), "value_float", AttributeProto::FLOAT).set_f(1.5F);
  s.gives(DType::f32, {}, of({1.5}));
  tensor_attribute(s.use("Constant", {}, true), "value", narrow, {2, 0, 1}, "");
  s.gives(narrow, {2, 0, 1}, of({}));
  if (s.opset < 21) return;
  tensor_attribute(s.use("ConstantOfShape", {s.known_ints({2, 3})}), "value", narrow, {1}, raw.substr(1, 1));
  s.gives(narrow, {2, 3}, [](std::int64_t) { return 2.0; });
  s.use("ConstantOfShape", {s.known_ints({3})});
  s.gives(DType::f32, {3}, of({0, 0, 0}));
  tensor_attribute(s.use("ConstantOfShape", {s.known(HostTensor(DType::i64, {0}))}, true), "value", narrow, {1},
                   raw.substr(2, 1));
  s.gives(narrow, {}, of({3}));
}

void quantised(Sheet& s, DType narrow) {
  const bool whole = !is_narrow_float(narrow);
  // Halves: 0.5 of 1.25 is 2.5, which is 2 among integers and among f4, 2.5 among 8-bit floats.
  const HostTensor x = listed(DType::f32, {2, 3}, {0, 1, 1.5, 2, 1.25, 3});
  const bool eight = narrow == DType::f8e4m3fn || narrow == DType::f8e5m2;
  const auto zero = [&](Dims shape) { return s.input(listed(narrow, std::move(shape), {0})); };
  s.use("QuantizeLinear", {s.input(x), s.known(listed(DType::f32, {}, {0.5})), zero({})});
  s.gives(narrow, {2, 3}, of({0, 2, 3, 4, eight ? 2.5 : 2, 6}));
  set_int(s.use("QuantizeLinear", {s.input(x), s.known(listed(DType::f32, {2}, {0.5, 1})), zero({2})}), "axis", 0);
  s.gives(narrow, {2, 3}, of({0, 2, 3, 2, whole ? 1 : eight ? 1.25 : 1, 3}));
  const HostTensor column = listed(DType::f32, {1, 5, 1}, {1, -1, 3, 0.25, 2});
  set_int(s.use("QuantizeLinear", {s.input(column), s.known(listed(DType::f32, {1}, {1})), zero({1})}, true), "axis", -1);
  const bool sign = narrow != DType::u4;
  s.gives(narrow, {1, 5, 1}, of({1, sign ? -1.0 : 0, 3, eight ? 0.25 : 0, 2}));

  const HostTensor q = listed(narrow, {2, 3}, {0, 1, 2, 3, 4, 6});
  s.use("DequantizeLinear", {s.input(q), s.known(listed(DType::f32, {}, {0.25}))});
  s.gives(DType::f32, {2, 3}, of({0, 0.25, 0.5, 0.75, 1, 1.5}));
  set_int(s.use("DequantizeLinear",
                {s.input(q), s.known(listed(DType::f16, {3}, {1, 2, 0.5})), s.input(listed(narrow, {3}, {0, 1, 2}))}),
          "axis", 1);
  s.gives(DType::f16, {2, 3}, of({0, 0, 0, 3, 6, 2}));
  s.use("DequantizeLinear", {s.input(HostTensor(narrow, {0, 2})), s.known(listed(DType::f32, {}, {2}))}, true);
  s.gives(DType::f32, {0, 2}, of({}));
  if (s.opset < 21) return;
  const HostTensor blocks = listed(narrow, {5, 1}, {1, 2, 3, 4, 6}), scales = listed(DType::f32, {2, 1}, {2, 0.5});
  NodeProto& node = s.use("DequantizeLinear", {s.input(blocks), s.input(scales)}, true);
  set_int(node, "axis", 0);
  set_int(node, "block_size", 3);
  s.gives(DType::f32, {5, 1}, of({2, 4, 6, 2, 3}));
}

// 19 lets Equal compare texts too.
void equal(Sheet& s) {
  s.use("Equal", {s.input(texts({2, 2}, {"a", "b", "", "ab"})), s.input(texts({2}, {"a", "ab"}))});
  s.gives(DType::boolean, {2, 2}, of({1, 0, 0, 1}));
  s.use("Equal", {s.input(listed(DType::bf16, {3}, {1, 2, 3})), s.input(listed(DType::bf16, {3}, {1, 2.5, 3}))});
  s.gives(DType::boolean, {3}, of({1, 0, 1}));
  s.use("Equal", {s.input(listed(DType::i64, {3, 1, 1}, {1, 2, 3})), s.input(listed(DType::i64, {1, 2}, {3, 1}))}, true);
  s.gives(DType::boolean, {3, 1, 2}, of({0, 1, 0, 0, 1, 0}));
}

}  // namespace

void movement_uses(Sheet& s) {
  if (s.opset == 18) pads(s, DType::f32);
  const auto with = [&](DType narrow) {
    kept(s, narrow);
    pads(s, narrow);
    casts(s, narrow);
    constants(s, narrow);
    quantised(s, narrow);
  };
  if (s.opset == 19) {
    with(DType::f8e4m3fn);
    with(DType::f8e5m2);
    equal(s);
  }
  if (s.opset == 21) {
    with(DType::u4);
    with(DType::i4);
  }
  if (s.opset == 23) with(DType::f4e2m1);
  if (s.opset == 20) {
    tensor_attribute(s.use("ConstantOfShape", {s.known_ints({2, 3})}), "value", DType::f8e5m2, {1}, "\x3c");
    s.gives(DType::f8e5m2, {2, 3}, [](std::int64_t) { return 1.0; });
    tensor_attribute(s.use("ConstantOfShape", {s.known_ints({4})}), "value", DType::bf16, {1}, std::string("\xc0\x3f", 2));
    s.gives(DType::bf16, {4}, [](std::int64_t) { return 1.5; });
    tensor_attribute(s.use("ConstantOfShape", {s.known_ints({1, 0, 5})}, true), "value", DType::f8e4m3fn, {1}, "\x38");
    s.gives(DType::f8e4m3fn, {1, 0, 5}, of({}));
  }
}

}  // namespace oclc::test

// Operators as opsets 1 to 6 had them, where they differ: broadcasting by attributes, types as texts, shapes as attributes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// Before opset 7 the second operand is repeated only if `broadcast` says so; its axes begin at `axis` of the first one.
Value* aligned(OpContext& c) {
  Value *a = c.input(0), *b = c.input(1);
  const bool broadcast = c.flag("broadcast");
  if (!c.has("axis") || !broadcast) {
    if (!broadcast && !(a->type.shape == b->type.shape))
      c.fail("operands of one shape, or attribute 'broadcast'", fmt::format("{} and {}", a->type.text(), b->type.text()));
    return b;
  }
  const std::size_t axis = c.axis(c.integer("axis"), a->type.rank());
  if (axis + b->type.rank() > a->type.rank())
    c.fail(fmt::format("at most {} axes from axis {} on", a->type.rank() - axis, axis), b->type.text());
  Shape shape = b->type.shape;
  shape.resize(a->type.rank() - axis, Expr(1));
  return c.b.reshape(b, std::move(shape));
}

Outputs legacy_binary(OpContext& c) { return {c.b.call(c.core(), {c.input(0), aligned(c)})}; }

Outputs legacy_cast(OpContext& c) {
  static constexpr std::array<std::pair<std::string_view, DType>, 13> kTypes = {{{"FLOAT", DType::f32},
                                                                                 {"UINT8", DType::u8},
                                                                                 {"INT8", DType::i8},
                                                                                 {"UINT16", DType::u16},
                                                                                 {"INT16", DType::i16},
                                                                                 {"INT32", DType::i32},
                                                                                 {"INT64", DType::i64},
                                                                                 {"BOOL", DType::boolean},
                                                                                 {"FLOAT16", DType::f16},
                                                                                 {"DOUBLE", DType::f64},
                                                                                 {"UINT32", DType::u32},
                                                                                 {"UINT64", DType::u64},
                                                                                 {"STRING", DType::string}}};
  const std::string name = c.text("to");
  for (const auto& [text, dtype] : kTypes) {
    if (text == name) return {c.b.cast(c.input(0), dtype)};
  }
  c.unsupported("the name of an element type as attribute 'to'", printable(name));
}

Outputs legacy_concat(OpContext& c) {
  std::vector<Value*> values;
  for (std::size_t i = 0; i < c.inputs(); ++i) values.push_back(c.input(i));
  return {c.b.concat(std::move(values), static_cast<std::int64_t>(c.axis_attribute(1)))};
}

Outputs legacy_batch_normalization(OpContext& c) {
  c.ignore({"momentum", "spatial"});
  if (!c.flag("is_test")) c.unsupported("is_test 1", "0", "export the model for inference, with opset 7 or newer to train it");
  if (!c.flag("spatial", true)) c.unsupported("spatial 1", "0");
  Value* x = c.input(0);
  Shape shape{x->type.shape.at(1)};
  shape.resize(std::max<std::size_t>(x->type.rank(), 2) - 1, Expr(1));
  Value* factor = c.b.div(c.input(1), c.b.sqrt(c.b.add(c.input(4), c.real("epsilon", 1e-5))));
  Value* shift = c.b.sub(c.input(2), c.b.mul(c.input(3), factor));
  return {c.b.fma(x, c.b.reshape(factor, shape), c.b.reshape(shift, shape))};
}

Outputs legacy_dropout(OpContext& c) {
  c.ignore({"ratio"});
  if (!c.flag("is_test")) c.warn("is_test 0 is read as 1: the dropout does nothing");
  if (!c.wants_output(1)) return {c.input(0)};
  return {c.input(0), c.b.expand(c.b.scalar(c.input(0)->type.dtype, 1), c.shape(0))};
}

Outputs legacy_gemm(OpContext& c) {
  c.ignore({"broadcast"});
  const double alpha = c.real("alpha", 1.0), beta = c.real("beta", 1.0);
  Value* product = c.b.matmul(c.input(0), c.input(1), c.flag("transA"), c.flag("transB"));
  if (alpha != 1) product = c.b.mul(product, alpha);
  return {c.b.add(product, beta == 1 ? c.input(2) : c.b.mul(c.input(2), beta))};
}

// One slope, or one of each channel.
Outputs legacy_prelu(OpContext& c) {
  Value *x = c.input(0), *slope = c.input(1);
  Shape shape = slope->type.shape;
  if (shape.size() == 1 && !(shape[0] == Expr(1)) && x->type.rank() > 1) shape.resize(x->type.rank() - 1, Expr(1));
  slope = c.b.reshape(slope, std::move(shape));
  return {c.b.where(c.b.call("less", {x, c.b.scalar(x->type.dtype, 0)}), c.b.mul(x, slope), x)};
}

Outputs pad(OpContext& c) {
  const Ints pads = c.integers("paddings");
  const std::size_t rank = c.rank(0);
  const std::string mode = c.text("mode", "constant");
  if (pads.size() != 2 * rank) c.fail(fmt::format("{} paddings", 2 * rank), std::to_string(pads.size()));
  for (const std::int64_t p : pads) {
    if (p < 0) c.unsupported("paddings of at least 0", std::to_string(p));
  }
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  return {c.b.pad(c.input(0), {pads.begin(), middle}, {middle, pads.end()}, c.real("value", 0.0), mode)};
}

Outputs legacy_reshape(OpContext& c) {
  const Ints wanted = c.integers("shape");
  Shape shape;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < -1 || (wanted[i] == -1 && open) || (wanted[i] == 0 && i >= c.rank(0)))
      c.fail("dimensions of at least -1, one -1 and no 0 beyond the input's rank",
             text_of(Shape(wanted.begin(), wanted.end())));
    if (wanted[i] == -1) open = i;
    shape.push_back(wanted[i] == -1 ? Expr(1) : wanted[i] == 0 ? c.shape(0)[i] : Expr(wanted[i]));
  }
  const Expr rest = product(shape);
  if (open && rest == Expr(0)) c.fail("a -1 beside dimensions other than 0", text_of(shape));
  if (open) shape[*open] = floor_div(c.input(0)->type.elements(), rest);
  return {c.b.reshape(c.input(0), std::move(shape))};
}

constexpr OpRow kLegacyRows[] = {
    {"Add", 1, 2, 2, legacy_binary, "add"},
    {"And", 1, 2, 2, legacy_binary, "and"},
    {"Div", 1, 2, 2, legacy_binary, "div"},
    {"Equal", 1, 2, 2, legacy_binary, "equal"},
    {"Greater", 1, 2, 2, legacy_binary, "greater"},
    {"Less", 1, 2, 2, legacy_binary, "less"},
    {"Mul", 1, 2, 2, legacy_binary, "mul"},
    {"Or", 1, 2, 2, legacy_binary, "or"},
    {"Pow", 1, 2, 2, legacy_binary, "pow"},
    {"Sub", 1, 2, 2, legacy_binary, "sub"},
    {"Xor", 1, 2, 2, legacy_binary, "xor"},
    {"BatchNormalization", 1, 5, 5, legacy_batch_normalization},
    {"Cast", 1, 1, 1, legacy_cast},
    {"Concat", 1, 1, kAnyNumber, legacy_concat},
    {"Dropout", 1, 1, 1, legacy_dropout},
    {"Gemm", 1, 3, 3, legacy_gemm},
    {"PRelu", 1, 2, 2, legacy_prelu},
    {"Pad", 1, 1, 1, pad},
    {"Reshape", 1, 1, 1, legacy_reshape},
};

}  // namespace

std::span<const OpRow> legacy_rows() { return kLegacyRows; }

}  // namespace oclc::onnx

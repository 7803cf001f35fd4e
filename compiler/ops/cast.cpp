// Conversion of element types, as C does it; bool is x != 0. What is too large for a narrow float is infinite, or NaN where it
// has no infinity.
#include <fmt/format.h>

#include <cstring>

#include "compiler/ops/builder.h"
#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

std::vector<TensorType> infer(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  const DType dtype = node.get<DType>("dtype");
  if (x.dtype == DType::string || dtype == DType::string)
    reject("numbers", x.dtype == DType::string ? x.text() : "a cast to string");
  return {{dtype, x.shape}};
}

// Weights of 8 bits as floats: there are many of them.
template <class Number>
void widen(const HostTensor& x, HostTensor& result) {
  const auto* from = reinterpret_cast<const Number*>(x.data());
  auto* to = reinterpret_cast<float*>(result.mutable_data());
  for (std::int64_t i = 0; i < x.elements(); ++i) to[i] = static_cast<float>(from[i]);
}

std::vector<HostTensor> eval_cast(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor& x = inputs[0];
  HostTensor result(node.get<DType>("dtype"), x.shape());
  if (result.dtype() == DType::f32 && (x.dtype() == DType::i8 || x.dtype() == DType::u8)) {
    if (x.dtype() == DType::i8)
      widen<std::int8_t>(x, result);
    else
      widen<std::uint8_t>(x, result);
    return {std::move(result)};
  }
  const auto real = [](DType dtype) { return is_float(dtype) || is_narrow_float(dtype); };
  const bool through_double = real(x.dtype()) || real(result.dtype());
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    if (through_double) {
      result.set(i, x.at(i));
    } else {
      result.set_int(i, x.int_at(i));
    }
  }
  return {std::move(result)};
}

// Integers keep their values (sizes fit every integer type that models use for them); bool asks whether they can be 0.
std::optional<std::vector<Expr>> content(const Node& node) {
  const auto& known = node.inputs[0]->content;
  const DType dtype = node.get<DType>("dtype");
  if (!known || is_float(dtype) || is_narrow(dtype)) return std::nullopt;
  std::vector<Expr> values;
  for (const Expr& e : *known) {
    if (e.is_constant()) {
      HostTensor wrapped(dtype, {});
      wrapped.set_int(0, e.value());
      values.emplace_back(wrapped.int_at(0));
    } else if (dtype != DType::boolean) {
      values.push_back(e);
    } else if (known_less(Expr(0), e) || known_less(e, Expr(0))) {
      values.emplace_back(1);
    } else {
      return std::nullopt;
    }
  }
  return values;
}

std::vector<Value*> gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  const DType from = node.inputs[0]->type.dtype;
  if (!gradients[0] || !is_float(from) || !is_float(node.get<DType>("dtype"))) return {nullptr};
  return {b.cast(gradients[0], from)};
}

Cost cost_of_cast(const Node& node) { return {node.output(0)->type.elements()}; }

std::vector<TensorType> infer_bits(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  const DType dtype = node.get<DType>("dtype");
  if (x.dtype == DType::string || dtype == DType::string || width_bits(x.dtype) != width_bits(dtype))
    reject("element types of one width", fmt::format("{} and {}", x.text(), name_of(dtype)));
  return {{dtype, x.shape}};
}

std::vector<HostTensor> eval_bits(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor& x = inputs[0];
  HostTensor result(node.get<DType>("dtype"), x.shape());
  const bool parts = width_bits(x.dtype()) < 8, truth = result.dtype() == DType::boolean;
  if (!parts && !truth) {
    std::memcpy(result.mutable_data(), x.data(), x.bytes());
    return {std::move(result)};
  }
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const int byte = std::to_integer<int>(x.data()[i]);
    if (is_narrow_float(result.dtype()))
      result.mutable_data()[i] = static_cast<std::byte>(byte & ((1 << width_bits(x.dtype())) - 1));
    else
      result.set_int(i, byte);  // which keeps the low bits
  }
  return {std::move(result)};
}

constexpr OpDef kCastOps[] = {
    {.name = "cast",
     .kind = OpKind::elementwise,
     .formula = "a converted to dtype as C does; bool is a != 0",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .eval = eval_cast,
     .content = content,
     .cost = cost_of_cast,
     .gradient = gradient},
    {.name = "bitcast",
     .kind = OpKind::elementwise,
     .formula = "the bits of a read as dtype, which is as wide",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_bits,
     .eval = eval_bits,
     .cost = cost_of_cast,
     .gradient = no_gradient},
};

}  // namespace

std::span<const OpDef> cast_ops() { return kCastOps; }

}  // namespace oclc

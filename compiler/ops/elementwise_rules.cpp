#include "compiler/ops/elementwise_rules.h"

#include <fmt/format.h>

#include "compiler/ops/elementwise_content.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

std::string types_of(const Node& node, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < node.inputs.size(); ++i)
    text += fmt::format("{}{}", i == from ? "" : (i + 1 == node.inputs.size() ? " and " : ", "), type_of_input(node, i).text());
  return text;
}

std::vector<TensorType> infer_operands(const Node& node, Accepts accepts) {
  const std::size_t first = accepts == Accepts::condition ? 1 : 0;
  Shape shape;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) shape = broadcast(shape, type_of_input(node, i).shape);
  if (first == 1 && type_of_input(node, 0).dtype != DType::boolean)
    reject("a condition of bool", type_of_input(node, 0).text());
  const DType dtype = type_of_input(node, first).dtype;
  for (std::size_t i = first + 1; i < node.inputs.size(); ++i) {
    if (type_of_input(node, i).dtype != dtype) reject("operands of one element type", types_of(node, first));
  }
  const bool good = (accepts == Accepts::any && !is_narrow(dtype)) || accepts == Accepts::condition ||
                    (accepts == Accepts::booleans && dtype == DType::boolean) ||
                    ((accepts == Accepts::numbers || accepts == Accepts::floats) && is_float(dtype)) ||
                    ((accepts == Accepts::numbers || accepts == Accepts::integers) && is_integer(dtype)) ||
                    (accepts == Accepts::words && dtype == DType::u32);
  if (!good) {
    if (accepts == Accepts::integers) reject("integer operands", types_of(node, first));
    if (accepts == Accepts::words) reject("u32 operands", types_of(node, first));
    reject(
        accepts == Accepts::floats ? "floating-point operands" : (accepts == Accepts::booleans ? "bool operands" : "numbers"),
        types_of(node, first));
  }
  return {{node.op->scalar->result_is_bool ? DType::boolean : dtype, std::move(shape)}};
}

template <Accepts accepts>
std::vector<TensorType> infer(const Node& node) {
  return infer_operands(node, accepts);
}

std::vector<HostTensor> eval(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  Sizes shape;
  for (const HostTensor& input : inputs) {
    if (input.shape().size() > shape.size()) shape.insert(shape.begin(), input.shape().size() - shape.size(), 1);
    for (std::size_t i = 0; i < input.shape().size(); ++i) {
      std::int64_t& dim = shape[shape.size() - input.shape().size() + i];
      if (dim == 1) dim = input.shape()[i];
    }
  }
  std::vector<Sizes> strides;
  for (const HostTensor& input : inputs) strides.push_back(broadcast_strides(input.shape(), shape));
  const ScalarOp& scalar = *node.op->scalar;
  const DType dtype = inputs.back().dtype();
  HostTensor result(scalar.result_is_bool ? DType::boolean : dtype, shape);
  if (is_float(dtype) || is_narrow_float(dtype)) {
    walk(shape, strides, [&](std::int64_t i, const Sizes& at) {
      double v[3] = {};
      for (std::size_t k = 0; k < inputs.size(); ++k) v[k] = inputs[k].at(at[k]);
      result.set(i, scalar.on_float(v[0], v[1], v[2]));
    });
  } else {
    const auto on_int = dtype == DType::u64 && scalar.on_u64 ? scalar.on_u64 : scalar.on_int;
    walk(shape, strides, [&](std::int64_t i, const Sizes& at) {
      std::int64_t v[3] = {};
      for (std::size_t k = 0; k < inputs.size(); ++k) v[k] = inputs[k].int_at(at[k]);
      result.set_int(i, on_int(v[0], v[1], v[2]));
    });
  }
  return {std::move(result)};
}

Cost cost(const Node& node) {
  return {node.output(0)->type.elements() * Expr(static_cast<std::int64_t>(node.op->scalar->flops))};
}

}  // namespace

OpDef elementwise_def(const ElementwiseRow& row) {
  OpDef def;
  def.name = row.name;
  def.kind = OpKind::elementwise;
  def.formula = row.formula;
  def.min_inputs = def.max_inputs = row.arity;
  switch (row.accepts) {
    case Accepts::floats:
      def.infer = infer<Accepts::floats>;
      break;
    case Accepts::numbers:
      def.infer = infer<Accepts::numbers>;
      break;
    case Accepts::booleans:
      def.infer = infer<Accepts::booleans>;
      break;
    case Accepts::any:
      def.infer = infer<Accepts::any>;
      break;
    case Accepts::integers:
      def.infer = infer<Accepts::integers>;
      break;
    case Accepts::words:
      def.infer = infer<Accepts::words>;
      break;
    case Accepts::condition:
      def.infer = infer<Accepts::condition>;
      break;
  }
  def.eval = eval;
  def.content = elementwise_content;
  def.cost = cost;
  def.scalar = &row.scalar;
  def.gradient = row.gradient;
  return def;
}

}  // namespace oclc

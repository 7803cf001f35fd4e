#include "compiler/ops/elementwise_rules.h"

#include <fmt/format.h>

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
  const bool good = accepts == Accepts::any || accepts == Accepts::condition ||
                    (accepts == Accepts::booleans && dtype == DType::boolean) ||
                    ((accepts == Accepts::numbers || accepts == Accepts::floats) && is_float(dtype)) ||
                    (accepts == Accepts::numbers && is_integer(dtype));
  if (!good) {
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
    case Accepts::condition:
      def.infer = infer<Accepts::condition>;
      break;
  }
  def.cost = cost;
  def.scalar = &row.scalar;
  return def;
}

}  // namespace oclc

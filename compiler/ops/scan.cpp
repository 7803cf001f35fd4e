// Running combinations along an axis.
#include "compiler/ops/op_list.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

std::vector<TensorType> infer(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  if (x.dtype == DType::boolean) reject("numbers", x.text());
  const std::int64_t axis = node.get<std::int64_t>("axis");
  if (normalise_axis(axis, x.rank()) != axis) reject("an axis from 0 on", std::to_string(axis));
  node.get<std::int64_t>("exclusive");
  node.get<std::int64_t>("reverse");
  return {x};
}

Cost cost(const Node& node) { return {node.inputs[0]->type.elements()}; }

constexpr OpDef kOps[] = {
    {.name = "cumsum",
     .kind = OpKind::scan,
     .formula = "sum of the elements up to here along axis; exclusive: without this one; reverse: from the end",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .cost = cost},
};

}  // namespace

std::span<const OpDef> scan_ops() { return kOps; }

}  // namespace oclc

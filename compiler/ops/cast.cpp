// Conversion of element types, as C does it; bool is x != 0.
#include "compiler/ops/op_list.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

std::vector<TensorType> infer(const Node& node) { return {{node.get<DType>("dtype"), type_of_input(node, 0).shape}}; }

Cost cost(const Node& node) { return {node.output(0)->type.elements()}; }

constexpr OpDef kOps[] = {
    {.name = "cast",
     .kind = OpKind::elementwise,
     .formula = "a converted to dtype as C does; bool is a != 0",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .cost = cost},
};

}  // namespace

std::span<const OpDef> cast_ops() { return kOps; }

}  // namespace oclc

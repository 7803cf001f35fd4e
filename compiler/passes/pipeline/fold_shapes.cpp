// Values whose elements are known expressions (shapes, sizes and positions that a model computes) become `constant` or `exprs`
// nodes. Without it, shape arithmetic would run as kernels. Ramps stay: fold_ramps writes them as iota.
#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

bool fold_shape(Graph& graph, Node* node) {
  if (node->outputs.size() != 1 || is(node, "constant") || is(node, "iota")) return false;
  const Value& value = *node->output();
  if (!value.content || !value.type.is_static() || is_float(value.type.dtype) || is_narrow(value.type.dtype)) return false;
  if (is(node, "expand") && node->inputs[0]->producer && node->inputs[0]->producer->op->kind == OpKind::generator) return false;
  const std::vector<Expr> content = *value.content;
  Ints shape;
  for (const Expr& dim : value.type.shape) shape.push_back(dim.value());
  HostTensor tensor(value.type.dtype, shape);
  bool constant = true;
  for (std::size_t i = 0; constant && i < content.size(); ++i) {
    constant = content[i].is_constant();
    if (constant) tensor.set_int(static_cast<std::int64_t>(i), content[i].value());
  }
  if (!constant && (is(node, "exprs") || value.type.dtype == DType::boolean)) return false;
  Rewriter rewrite(graph, node);
  if (constant) return rewrite.replace(rewrite.constant(std::move(tensor)));
  return rewrite.replace(rewrite.call("exprs", {}, {{"values", content}, {"shape", shape}, {"dtype", value.type.dtype}}));
}

}  // namespace

bool fold_shapes(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {fold_shape};
  return apply_rules(graph, kRules);
}

}  // namespace oclc

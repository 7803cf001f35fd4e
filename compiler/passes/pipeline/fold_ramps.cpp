// Integer and boolean tensors that are linear in one position become iota, those that are the same everywhere one number,
// expanded. Exported attention masks and position tensors are built by tensor arithmetic on ranges; without this pass they
// would be computed, stored and gathered from at each inference.
#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/element.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

bool is_simple(const Node& node) {
  if (node.op->kind == OpKind::generator || node.outputs.size() != 1) return true;
  if (!is(&node, "expand")) return false;
  const Node* source = node.inputs[0]->producer;
  return source && source->op->kind == OpKind::generator;
}

bool fold_ramp(Graph& graph, Node* node) {
  if (is_simple(*node)) return false;
  const TensorType& type = node->output()->type;
  if (is_float(type.dtype) || is_narrow(type.dtype)) return false;
  const auto e = element(node->output(), positions(type.shape));
  const auto ramp = e ? ramp_of(*e, type.rank()) : std::nullopt;
  if (!ramp) return false;
  Rewriter rewrite(graph, node);
  if (!ramp->axis) {
    if (ramp->start.is_constant()) return rewrite.replace(rewrite.integer(type.dtype, ramp->start.value()));
    if (type.dtype == DType::boolean) return false;
    return rewrite.replace(
        rewrite.call("exprs", {}, {{"values", std::vector<Expr>{ramp->start}}, {"shape", Ints{}}, {"dtype", type.dtype}}));
  }
  if (type.dtype == DType::boolean) return false;
  Shape shape(type.rank(), Expr(1));
  shape[*ramp->axis] = type.shape[*ramp->axis];
  return rewrite.replace(rewrite.call("iota", {},
                                      {{"shape", shape},
                                       {"axis", static_cast<std::int64_t>(*ramp->axis)},
                                       {"dtype", type.dtype},
                                       {"start", std::vector<Expr>{ramp->start}},
                                       {"step", std::vector<Expr>{ramp->step}}}));
}

}  // namespace

bool fold_ramps(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {fold_ramp};
  return apply_rules(graph, kRules);
}

}  // namespace oclc

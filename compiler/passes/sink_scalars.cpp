// matmul(x * c, y) = matmul(x, y) * c for a constant number c: the factor leaves the operand, where it would be multiplied for
// every tile or cost a kernel, for the result, where it joins the epilogue. Attention scales its queries and keys this way.
// Stands after canonicalize, which puts constants on the right.
#include "compiler/passes/pass.h"
#include "compiler/passes/rewrite.h"

namespace oclc {
namespace {

// x of `x * number`, if nobody else reads the product; else null.
Value* scaled_operand(const Graph& graph, const Value* value, double& number) {
  const Node* product = producer(value, "mul");
  if (!product || !has_one_use(graph, value) || !is_float(value->type.dtype)) return nullptr;
  const auto factor = splat_of(product->inputs[1]);
  if (!factor || product->inputs[0]->type != value->type) return nullptr;
  number = *factor;
  return product->inputs[0];
}

}  // namespace

bool sink_scalars(Graph& graph, const PassContext&) {
  bool changed = false;
  for (Node* node : graph.nodes()) {
    if (!is(node, "matmul")) continue;
    double left = 1, right = 1;
    Value* a = scaled_operand(graph, node->inputs[0], left);
    Value* b = scaled_operand(graph, node->inputs[1], right);
    if (!a && !b) continue;
    Rewriter rewriter(graph, node);
    Value* product = rewriter.call("matmul", {a ? a : node->inputs[0], b ? b : node->inputs[1]}, node->attributes);
    changed = rewriter.replace(rewriter.call("mul", {product, rewriter.scalar(product->type.dtype, left * right)})) || changed;
  }
  return changed;
}

}  // namespace oclc

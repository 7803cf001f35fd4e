// matmul(x * c, y) = matmul(x, y) * c for a constant number c, also where x * c is reshaped or transposed: the factor leaves
// the operand, where it would be multiplied for every tile or cost a kernel, for the result, where it joins the epilogue and
// other factors. Attention scales its queries and keys this way. Stands after canonicalize, which puts constants on the right.
#include <cmath>

#include "compiler/passes/pipeline/movement_chain.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

bool sink(Graph& graph, Node* node) {
  if (!is(node, "matmul") || multiplies_integers(node) || node->output()->type.dtype != DType::f32) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    MovementChain chain = MovementChain::above(node->inputs[i]);
    const Node* scale = producer(chain.source, "mul");
    if (!scale || !has_one_use(graph, scale->output()) || !(scale->inputs[0]->type == scale->output()->type)) continue;
    const auto factor = splat_of(scale->inputs[1]);
    // Far from the ends of the range, so that neither the product nor merged factors overflow where they did not before.
    if (!factor || !(std::fabs(*factor) > 1e-10 && std::fabs(*factor) < 1e10)) continue;
    Rewriter rewrite(graph, node);
    chain.source = scale->inputs[0];
    std::vector<Value*> inputs = node->inputs;
    inputs[i] = chain.build(rewrite);
    Value* product = rewrite.call("matmul", std::move(inputs), node->attributes);
    return rewrite.replace(rewrite.call("mul", {product, rewrite.scalar(DType::f32, *factor)}));
  }
  return false;
}

}  // namespace

bool sink_scalars(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {sink};
  return apply_rules(graph, kRules);
}

}  // namespace oclc

// matmul(gather(table, i), w) = gather(matmul(table, w), i) for a constant table of rows and constant weights: the product with
// each row of the table is made once, here, and a run looks its results up. Without it a recurrent or linear layer behind an
// embedding multiplies the same few rows again and again. Only while the new table is small. Stands behind sink_movement, which
// takes transposes of the rows to the positions, and before joined products, which would be one wider table.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

constexpr std::int64_t kLeastTerms = 32;               // with fewer, a sum is cheaper than what it takes to read it
constexpr std::int64_t kMostTableBytes = 8LL << 20;    // of one table
constexpr std::int64_t kMostMultiplyAdds = 1LL << 29;  // of the reference, which is slow

// The constant if it is a matrix of f32, else null.
const HostTensor* constant_matrix(const Value* value) {
  const HostTensor* tensor = constant_of(value);
  return tensor && tensor->dtype() == DType::f32 && tensor->shape().size() == 2 ? tensor : nullptr;
}

bool is_small(const HostTensor& table, const HostTensor& weights, bool transposed) {
  const std::int64_t rows = table.shape()[0], terms = table.shape()[1], columns = weights.shape()[transposed ? 0 : 1];
  if (terms < kLeastTerms || rows == 0 || columns == 0) return false;
  const std::int64_t most = std::min(kMostTableBytes / static_cast<std::int64_t>(sizeof(float)), kMostMultiplyAdds / terms);
  return columns <= most / rows;
}

bool look_up(Graph& graph, Node* node) {
  if (!is(node, "matmul") || node->get<std::int64_t>("trans_a") != 0) return false;
  const Node* gather = producer(node->inputs[0], "gather");
  if (!gather || gather->get<std::int64_t>("axis") != 0 || gather->inputs[1]->type.rank() == 0) return false;
  const HostTensor *table = constant_matrix(gather->inputs[0]), *weights = constant_matrix(node->inputs[1]);
  if (!table || !weights || !is_small(*table, *weights, node->get<std::int64_t>("trans_b") != 0)) return false;
  Rewriter rewrite(graph, node);
  const Value* product = rewrite.call("matmul", {gather->inputs[0], node->inputs[1]}, node->attributes);
  Value* products =
      rewrite.constant(product->producer->op->eval(*product->producer, std::vector{*table, *weights}, {}).front());
  return rewrite.replace(rewrite.call("gather", {products, gather->inputs[1]}, gather->attributes));
}

}  // namespace

bool look_up_products(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {look_up};
  return apply_rules(graph, kRules);
}

}  // namespace oclc

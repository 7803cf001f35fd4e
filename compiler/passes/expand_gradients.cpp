// expand_gradients: the operators that gradients are made of (ops/backward.cpp) become convolutions, products, sums and index
// maps, which have kernels and strategies. Without it they have none.
#include "compiler/passes/expand_gradients.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/passes/gradient_windows.h"
#include "compiler/passes/pass.h"

namespace oclc {
namespace {

// A product with the indices' one-hot matrix, which is computed in the product's loads. Of one column a product reuses nothing;
// the sum of what the indices pick takes no products, so that a single number arrives as it is: infinite, or with more digits
// than matrix units multiply.
Value* expand_scatter_add(Builder& b, const Node& node) {
  Value *indices = node.inputs[0], *updates = node.inputs[1];
  const DType dtype = updates->type.dtype;
  const auto axis = node.get<std::int64_t>("axis");
  const Expr& size = node.get<Exprs>("size")[0];
  const auto rank = static_cast<std::int64_t>(updates->type.rank()), count = static_cast<std::int64_t>(indices->type.rank());
  Ints perm = from_to(axis, axis + count);
  for (const std::int64_t i : from_to(0, axis)) perm.push_back(i);
  for (const std::int64_t i : from_to(axis + count, rank)) perm.push_back(i);
  const Expr rows = indices->type.elements();
  const Shape& shape = updates->type.shape;
  Shape around(shape.begin(), shape.begin() + axis);
  around.insert(around.end(), shape.begin() + axis + count, shape.end());
  const Expr width = product(around);
  Value* columns = b.reshape(b.transpose(updates, perm), {rows, width});
  Value* row = b.reshape(indices, {rows, Expr(1)});
  const DType of_index = row->type.dtype;
  Value* wrapped = b.where(b.call("less", {row, b.scalar(of_index, 0)}), b.add(row, b.exprs({size}, {}, of_index)), row);
  Value* match = b.call("equal", {wrapped, b.iota({Expr(1), size}, 1, of_index)});
  Value* sums = width == Expr(1) ? b.reduce("reduce_sum", b.where(match, columns, b.scalar(dtype, 0)), {0}, false)
                                 : b.matmul(b.cast(match, dtype), columns, true, false);
  Shape parts{size};
  parts.insert(parts.end(), around.begin(), around.end());
  Ints back;
  for (const std::int64_t i : from_to(1, axis + 1)) back.push_back(i);
  back.push_back(0);
  for (const std::int64_t i : from_to(axis + 1, static_cast<std::int64_t>(parts.size()))) back.push_back(i);
  return b.transpose(b.reshape(sums, parts), back);
}

struct Row {
  std::string_view op;
  Value* (*expand)(Builder& b, const Node& node);
};

constexpr Row kRows[] = {{"conv_transpose", expand_conv_transpose}, {"conv_weight_grad", expand_conv_weight_grad},
                         {"max_pool_index", expand_max_pool_index}, {"max_pool_grad", expand_max_pool_grad},
                         {"avg_pool_grad", expand_avg_pool_grad},   {"scatter_add", expand_scatter_add}};

void expand_moments(Graph& graph, Builder& b, Node* node) {
  Value* x = node->inputs[0];
  const auto& axes = node->get<Ints>("axes");
  Value* mean = b.reduce("reduce_mean", x, axes, true);
  Value* centred = b.sub(x, mean);
  graph.replace_all_uses(node->output(0), mean);
  graph.replace_all_uses(node->output(1), b.reduce("reduce_mean", b.mul(centred, centred), axes, true));
}

}  // namespace

bool expand_gradients(Graph& graph, const PassContext& context) {
  bool changed = false;
  for (Node* node : graph.nodes()) {
    Builder b(graph, node->source);
    if (node->op->name == "moments") {
      expand_moments(graph, b, node);
      changed = true;
    }
    const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == node->op->name; });
    if (row == std::end(kRows)) continue;
    Value* laid_out = nullptr;
    if (context.lays_out_operands && row->expand == expand_conv_weight_grad) {
      laid_out = shifted_weight_grad(b, *node);
      if (!laid_out) laid_out = widened_weight_grad(b, *node);
    }
    graph.replace_all_uses(node->output(), laid_out ? laid_out : row->expand(b, *node));
    changed = true;
  }
  if (changed) {
    graph.sort();
    graph.erase_dead();
  }
  return changed;
}

}  // namespace oclc

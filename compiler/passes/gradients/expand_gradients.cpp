// expand_gradients: the operators that gradients are made of (ops/backward.cpp) become convolutions, products, sums and index
// maps, which have kernels and strategies. Without it they have none.
#include "compiler/passes/gradients/expand_gradients.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ir/typical.h"
#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/passes/pipeline/pass.h"

namespace oclc {
namespace {

// With fewer indices than this part of the places most places have none.
constexpr std::int64_t kFewIndices = 2;
// The same where only the plan's run knows how many indices there are.
constexpr std::int64_t kFewUnknownIndices = 8;

bool leaves_most_empty(const Expr& indices, const Expr& places) {
  const std::int64_t share = indices.is_constant() ? kFewIndices : kFewUnknownIndices;
  return known_less(Expr(0), indices) && static_cast<double>(share * typical_terms(indices)) <= typical(places);
}

// A product with the indices' one-hot matrix, which is computed in the product's loads. Where most places have no index, the
// rows of equal indices are added up first, by a product with the matrix of which index equals which, and each place takes the
// sum of the last index that names it: of an embedding the place's row is read where the gradient is used. Of one column a
// product reuses nothing; the sum of what the indices pick takes no products, so that a single number arrives as it is:
// infinite, or with more digits than matrix units multiply.
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
  wrapped = compared_indices(b, wrapped, size);
  Value* match = b.call("equal", {wrapped, b.iota({Expr(1), size}, 1, wrapped->type.dtype)});
  Value* sums = nullptr;
  if (width == Expr(1)) {
    sums = b.reduce("reduce_sum", b.where(match, columns, b.scalar(dtype, 0)), {0}, false);
  } else if (leaves_most_empty(rows, size)) {
    Value* equal = b.call("equal", {wrapped, b.reshape(wrapped, {Expr(1), rows})});
    Value* of_equal = b.matmul(b.cast(equal, dtype), columns);
    Value* number = b.iota({rows, Expr(1)}, 0, DType::i32);
    Value* last = b.reduce("reduce_max", b.where(match, number, b.scalar(DType::i32, -1)), {0}, false);
    Value* none = b.call("less", {b.reshape(last, {size, Expr(1)}), b.scalar(DType::i32, 0)});
    sums = b.where(none, b.scalar(dtype, 0), b.gather(of_equal, last));
  } else {
    sums = b.matmul(b.cast(match, dtype), columns, true, false);
  }
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
    Value* better = nullptr;
    if (context.lays_out_operands && row->expand == expand_conv_weight_grad) {
      better = correlated_weight_grad(b, *node);
      if (!better) better = shifted_weight_grad(b, *node);
      if (!better) better = widened_weight_grad(b, *node);
      if (!better) better = mirrored_weight_grad(b, *node);
      if (!better) better = whole_weight_grad(b, *node);
    }
    if (context.separates_classes && row->expand == expand_conv_transpose) better = split_stride_phases(b, *node);
    graph.replace_all_uses(node->output(), better ? better : row->expand(b, *node));
    changed = true;
  }
  if (changed) {
    graph.sort();
    graph.erase_dead();
  }
  return changed;
}

}  // namespace oclc

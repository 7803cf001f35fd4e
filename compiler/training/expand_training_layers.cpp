#include "compiler/ir/op_def.h"
#include "compiler/ops/random.h"
#include "compiler/training/training.h"

namespace oclc {
namespace {

Value* per_channel(Builder& b, Value* vector, std::size_t rank) {
  Shape shape(rank, Expr(1));
  shape[1] = vector->type.shape[0];
  return b.reshape(vector, std::move(shape));
}

void expand_batch_norm(Graph& graph, Node* node) {
  Builder b(graph, node->source);
  Value* x = node->inputs[0];
  const std::size_t rank = x->type.rank();
  Value *mean = nullptr, *variance = nullptr;
  if (node->outputs.size() == 3) {
    Ints axes{0};
    for (std::size_t i = 2; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
    Node* moments = b.node("moments", {x}, {{"axes", axes}});
    mean = moments->output(0);
    variance = moments->output(1);
    graph.replace_all_uses(node->output(1), mean);
    graph.replace_all_uses(node->output(2), variance);
  } else {
    mean = per_channel(b, node->inputs[3], rank);
    variance = per_channel(b, node->inputs[4], rank);
  }
  Value* factor = b.mul(b.unary("rsqrt", b.add(variance, node->get<double>("epsilon"))), per_channel(b, node->inputs[1], rank));
  graph.replace_all_uses(node->output(0), b.fma(b.sub(x, mean), factor, per_channel(b, node->inputs[2], rank)));
}

void expand_dropout(Graph& graph, Node* node) {
  Value* x = node->inputs[0];
  if (node->inputs.size() == 1) return graph.replace_all_uses(node->output(), x);
  Builder b(graph, node->source);
  const double ratio = node->get<double>("ratio");
  const auto word = [&](std::uint32_t value) { return b.exprs({Expr(static_cast<std::int64_t>(value))}, {}, DType::u32); };
  Value* index = b.reshape(b.iota({x->type.elements()}, 0, DType::u32), x->type.shape);
  const auto layer = static_cast<std::uint32_t>(node->get<std::int64_t>("layer"));
  Value* stream = b.add(node->inputs[2], word(layer * kStreamStep));
  Value* kept = b.call("less", {b.call("random_bits", {index, node->inputs[1], stream}), word(dropout_limit(ratio))});
  graph.replace_all_uses(node->output(), b.where(kept, b.mul(x, 1 / (1 - ratio)), b.scalar(x->type.dtype, 0)));
}

}  // namespace

void expand_training_layers(Graph& graph) {
  for (Node* node : graph.nodes()) {
    if (node->op->name == "batch_norm") expand_batch_norm(graph, node);
    if (node->op->name == "dropout") expand_dropout(graph, node);
    for (const auto& body : node->bodies) expand_training_layers(*body);
  }
  graph.sort();
  graph.erase_dead();
}

}  // namespace oclc

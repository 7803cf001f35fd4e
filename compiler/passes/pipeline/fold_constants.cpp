// Evaluates nodes whose operands are all constants, by the operators' reference. Without it, arithmetic on weights (scales of
// batch norms, casts) would run at each inference. Index maps that only blow up memory (expand) are left to the kernels, and
// what takes too long here to the device: products of large weights.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

struct Sizes {
  std::int64_t operands = 0, results = 0;  // bytes
  std::int64_t most_elements = 0;          // of an operand
};

std::optional<Sizes> sizes_if_constant(const Node& node) {
  Sizes sizes;
  for (const Value* input : node.inputs) {
    if (!input) continue;
    const HostTensor* tensor = constant_of(input);
    if (!tensor) return std::nullopt;
    sizes.operands += static_cast<std::int64_t>(tensor->bytes());
    sizes.most_elements = std::max(sizes.most_elements, tensor->elements());
  }
  for (const auto& output : node.outputs) {
    if (!output->type.is_static()) return std::nullopt;
    const std::int64_t count = output->type.elements().value(),
                       size = static_cast<std::int64_t>(size_bytes(output->type.dtype));
    if (count > INT64_MAX / 16 / size) return std::nullopt;
    sizes.results += count * size;
  }
  return sizes;
}

// What the node's reference computes, counted in flops: each element of a result is at least one.
std::int64_t work_of(const Node& node) {
  std::int64_t elements = 0;
  for (const auto& output : node.outputs) elements += output->type.elements().value();
  const std::int64_t flops = node.op->cost ? node.op->cost(node).flops.constant().value_or(0) : 0;
  return std::max(elements, flops);
}

// Expressions among the attributes may name symbols that have no value here.
bool is_bound(const Node& node) {
  for (const auto& [name, value] : node.attributes) {
    const auto* exprs = std::get_if<std::vector<Expr>>(&value);
    for (const Expr& e : exprs ? *exprs : std::vector<Expr>()) {
      if (!e.is_constant()) return false;
    }
  }
  return true;
}

bool feeds_product(const Value* value, int depth = 0);

// The same of what the body of `user` calls the value: a loop's body takes all operands but those that it carries as they are,
// the body behind `bind_dims` all but the first.
bool feeds_product_of_body(const Value* value, const Node* user, int depth) {
  const std::size_t first = is(user, "loop") ? static_cast<std::size_t>(user->get<std::int64_t>("carried")) : 1,
                    before = is(user, "loop") ? 0 : 1;
  for (std::size_t i = first; i < user->inputs.size(); ++i)
    if (user->inputs[i] == value && feeds_product(user->bodies.at(0)->inputs().at(i - before).get(), depth + 1)) return true;
  return false;
}

// Elementwise work and movement alone lie between the value and an operand of a product, which may be one of a loop.
bool feeds_product(const Value* value, int depth) {
  constexpr int kFarthest = 12;
  return std::any_of(value->users.begin(), value->users.end(), [&](const Node* user) {
    if (user->op->kind == OpKind::contraction) return true;
    if (depth >= kFarthest) return false;
    if (is(user, "loop") || is(user, "bind_dims")) return feeds_product_of_body(value, user, depth);
    const bool passes = user->op->kind == OpKind::elementwise || user->op->kind == OpKind::movement;
    return passes && user->outputs.size() == 1 && feeds_product(user->output(), depth + 1);
  });
}

// Numbers of few bits that become numbers of more: weights of products are packed so, once; others are widened where they are
// loaded.
bool widens_weights(const Node& node, const Sizes& sizes) {
  return (node.op->kind == OpKind::elementwise || node.op->kind == OpKind::movement) && node.outputs.size() == 1 &&
         node.output()->type.elements().value() <= sizes.most_elements && feeds_product(node.output());
}

std::vector<HostTensor> evaluate(const Node& node, const std::vector<HostTensor>& operands) {
  try {
    return node.op->eval(node, operands, {});
  } catch (const CompileError& error) {
    auto parts = error.parts();
    parts.stage = "passes";
    if (parts.node.empty()) parts.node = node.source;
    if (parts.op.empty()) parts.op = std::string(node.op->name);
    throw CompileError(parts);
  }
}

}  // namespace

bool fold_constants(Graph& graph, const PassContext& context) {
  bool changed = graph.erase_dead();
  std::int64_t spent = 0, own_flops = 0;
  std::int64_t& flops = context.folded_flops ? *context.folded_flops : own_flops;
  for (Node* node : graph.nodes()) {
    const bool has_operand = std::any_of(node->inputs.begin(), node->inputs.end(), [](const Value* v) { return v != nullptr; });
    if (!has_operand || !node->op->eval || !node->bodies.empty() || node->op->kind == OpKind::opaque || !is_bound(*node))
      continue;
    if (is(node, "reshape")) continue;  // simplify_movement shares the bytes
    const auto sizes = sizes_if_constant(*node);
    if (!sizes || sizes->results > context.fold_result_bytes || sizes->results > context.fold_total_bytes - spent) continue;
    const bool widens = widens_weights(*node, *sizes);
    if (!widens && sizes->results > context.fold_growth_bytes && sizes->results > 2 * sizes->operands) continue;
    if (is(node, "expand") && sizes->results > sizes->operands) continue;
    // Plain copies and sums of what the file holds are in proportion to it; products may be of its square.
    const std::int64_t work = node->op->cost && !widens ? work_of(*node) : 0;
    if (work > context.fold_flops - flops) continue;
    std::vector<HostTensor> operands;
    for (const Value* input : node->inputs) operands.push_back(input ? *constant_of(input) : HostTensor(DType::f32, {0}));
    if (most_text_bytes(*node, operands) > context.fold_text_bytes) continue;
    std::vector<HostTensor> results = evaluate(*node, operands);
    spent += sizes->results;
    flops += work;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!(results[i].type() == node->output(i)->type))
        check_failed("type", "fold_constants", 0, node->output(i)->type.text());
      Value* folded = graph.add(op("constant"), {}, {{"tensor", std::move(results[i])}}, node->source, node)->output();
      folded->layout = node->output(i)->layout;
      if (node->output(i)->users.empty() && !graph.is_output(node->output(i))) continue;
      graph.replace_all_uses(node->output(i), folded);
    }
    graph.erase(node);
    changed = true;
  }
  graph.erase_dead();
  return changed;
}

}  // namespace oclc

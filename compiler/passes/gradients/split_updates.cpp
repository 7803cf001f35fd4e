#include "compiler/passes/gradients/split_updates.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/rewrite.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Results of a product that are worth launches of their own for what lies beside them.
constexpr std::int64_t kLargeProduct = 4'000'000;

bool is_large_product(const Graph& graph, const Value* value) {
  const Node* node = value->producer;
  while (is(node, "reshape") && has_one_use(graph, value)) {
    value = node->inputs[0];
    node = value->producer;
  }
  return is(node, "matmul") && has_one_use(graph, value) && value->type.is_static() && value->type.dtype == DType::f32 &&
         value->type.elements().value() >= kLargeProduct;
}

bool is_elementwise(const Node* node) {
  return node && node->op->kind == OpKind::elementwise && node->op->scalar && node->outputs.size() == 1;
}

// What is computed from the concatenation, in order: elementwise operators of its shape. Nothing if there is another reader.
std::optional<std::vector<Node*>> readers(const Graph& graph, const Node& concat) {
  std::unordered_set<const Value*> made{concat.output()};
  std::vector<Node*> chain;
  double flops = 0;
  for (Node* node : graph.nodes()) {
    if (std::none_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) { return made.count(v) != 0; })) continue;
    if (!is_elementwise(node) || !(node->output()->type.shape == concat.output()->type.shape)) return std::nullopt;
    made.insert(node->output());
    chain.push_back(node);
    flops += node->op->scalar->flops;
  }
  return flops <= cost::kEpilogueFlops ? std::optional(chain) : std::nullopt;
}

// The operators behind a concatenation for a range of its elements.
class Part {
 public:
  Part(Rewriter& r, const Value* whole, Value* part, Expr first)
      : r_(r), shape_(whole->type.shape), size_(part->type.shape), first_(std::move(first)) {
    known_[whole] = part;
  }

  Value* of(Value* value) {
    if (!(value->type.shape == shape_)) return value;  // one number for all elements
    if (const auto at = known_.find(value); at != known_.end()) return at->second;
    Value* part = nullptr;
    if (is_elementwise(value->producer)) {
      std::vector<Value*> inputs;
      for (Value* input : value->producer->inputs) inputs.push_back(of(input));
      part = r_.call(value->producer->op->name, inputs, value->producer->attributes);
    } else {
      part = r_.slice(value, {first_}, size_, {1});
    }
    return known_[value] = part;
  }

 private:
  Rewriter& r_;
  Shape shape_, size_;
  Expr first_;
  std::unordered_map<const Value*, Value*> known_;
};

bool is_number_or(const Shape& shape, const Value* v) { return v && (v->type.shape == shape || v->type.elements() == Expr(1)); }

bool split(Graph& graph, Node* concat) {
  const auto chain = readers(graph, *concat);
  const Shape& shape = concat->output()->type.shape;
  if (!chain || chain->empty() || graph.is_output(concat->output())) return false;
  for (const Node* node : *chain) {
    if (!std::all_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) { return is_number_or(shape, v); }))
      return false;
    if (node->output()->users.empty() && !graph.is_output(node->output())) return false;
  }
  std::vector<Value*> results;
  for (const Node* node : *chain) {
    if (graph.is_output(node->output())) results.push_back(node->output());
  }
  Rewriter r(graph, chain->back());
  std::vector<std::vector<Value*>> parts(results.size());
  std::vector<Value*> together;
  Expr first(0);
  const auto close = [&](Value* part) {
    Part of_part(r, concat->output(), part, first);
    for (std::size_t i = 0; i < results.size(); ++i) parts[i].push_back(of_part.of(results[i]));
    first += part->type.shape[0];
  };
  const auto close_together = [&] {
    if (!together.empty()) close(together.size() == 1 ? together[0] : r.concat(together, 0));
    together.clear();
  };
  for (Value* operand : std::vector<Value*>(concat->inputs)) {
    if (!is_large_product(graph, operand)) {
      together.push_back(operand);
      continue;
    }
    close_together();
    close(operand);
  }
  close_together();
  for (std::size_t i = results.size(); i-- > 0;) graph.replace_all_uses(results[i], r.concat(parts[i], 0));
  return true;
}

}  // namespace

bool split_updates(Graph& graph, const Target& target) {
  if (!target.multiplies_groups()) return false;
  bool changed = false;
  for (Node* node : graph.nodes()) {
    if (node->op->name != "concat" || node->output()->type.rank() != 1 || node->inputs.size() < 2) continue;
    if (std::none_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) { return is_large_product(graph, v); }))
      continue;
    changed = split(graph, node) || changed;
  }
  if (changed) {
    graph.sort();
    graph.erase_dead();
  }
  return changed;
}

}  // namespace oclc

#include "compiler/passes/pipeline/rewrite.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "compiler/ir/op_def.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::int64_t kMaxSplatElements = 1 << 20;
constexpr std::size_t kMaxRuleRounds = 1000;  // and one for each node: a rule may take one step along a chain a round

std::optional<double> splat_of(const HostTensor& tensor) {
  if (tensor.elements() == 0 || tensor.elements() > kMaxSplatElements) return std::nullopt;
  const std::size_t size = size_bytes(tensor.dtype());
  if (std::memcmp(tensor.data(), tensor.data() + size, tensor.bytes() - size) != 0) return std::nullopt;
  return tensor.at(0);
}

}  // namespace

Value* Rewriter::call(std::string_view name, std::vector<Value*> inputs, Attributes attributes) {
  made_.push_back(graph_.add(op(name), std::move(inputs), std::move(attributes), node_->source, node_));
  return made_.back()->output();
}

Value* Rewriter::constant(HostTensor tensor) { return call("constant", {}, {{"tensor", std::move(tensor)}}); }

Value* Rewriter::integer(DType dtype, std::int64_t value) {
  HostTensor tensor(dtype, {});
  tensor.set_int(0, value);
  return constant(std::move(tensor));
}

Value* Rewriter::reshape(Value* x, const Shape& shape) {
  return x->type.shape == shape ? x : call("reshape", {x}, {{"shape", shape}});
}

Value* Rewriter::transpose(Value* x, const Ints& perm) {
  return std::is_sorted(perm.begin(), perm.end()) ? x : call("transpose", {x}, {{"perm", perm}});
}

Value* Rewriter::expand(Value* x, const Shape& shape) {
  return x->type.shape == shape ? x : call("expand", {x}, {{"shape", shape}});
}

Value* Rewriter::slice(Value* x, std::vector<Expr> starts, std::vector<Expr> sizes, Ints steps) {
  const bool all_from_start = std::all_of(starts.begin(), starts.end(), [](const Expr& e) { return e == Expr(0); });
  const bool unit_steps = std::all_of(steps.begin(), steps.end(), [](std::int64_t s) { return s == 1; });
  if (all_from_start && unit_steps && sizes == x->type.shape) return x;
  return call("slice", {x}, {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}, {"steps", std::move(steps)}});
}

Value* Rewriter::concat(std::vector<Value*> values, std::int64_t axis) {
  return values.size() == 1 ? values[0] : call("concat", std::move(values), {{"axis", axis}});
}

bool Rewriter::give_up() {
  for (; !made_.empty(); made_.pop_back()) graph_.erase(made_.back());
  return false;
}

bool Rewriter::replace(Value* value) {
  Value* output = node_->output();
  if (value == output) return give_up();
  if (value->type.dtype == output->type.dtype && !(value->type.shape == output->type.shape) &&
      value->type.rank() <= output->type.rank()) {
    const Shape& from = value->type.shape;
    const std::size_t lead = output->type.rank() - from.size();
    bool broadcasts = true;
    for (std::size_t i = 0; i < from.size(); ++i)
      broadcasts = broadcasts && (from[i] == Expr(1) || from[i] == output->type.shape[lead + i]);
    if (broadcasts) value = expand(value, output->type.shape);
  }
  if (!(value->type == output->type) || !(value->layout == output->layout)) return give_up();
  graph_.replace_all_uses(output, value);
  // A replacement may itself read the node's output: it must not, since it stands in front of it.
  graph_.erase(node_);
  made_.clear();
  return true;
}

bool try_input(Graph& graph, Node* node, std::size_t index, Value* value) {
  Value* old = node->inputs.at(index);
  if (old == value) return false;
  node->inputs[index] = value;
  bool same = false;
  try {
    const std::vector<TensorType> types = node->op->infer(*node);
    same = types.size() == node->outputs.size();
    for (std::size_t i = 0; same && i < types.size(); ++i) same = types[i] == node->output(i)->type;
  } catch (const CompileError&) {
    same = false;
  }
  node->inputs[index] = old;
  if (same) graph.set_input(node, index, value);
  return same;
}

std::optional<double> splat_of(const Value* value) {
  while (value && (producer(value, "expand") || producer(value, "reshape"))) value = value->producer->inputs[0];
  const HostTensor* tensor = constant_of(value);
  return tensor ? splat_of(*tensor) : std::nullopt;
}

bool is_splat(const Value* value, double number) {
  const auto splat = splat_of(value);
  return splat && *splat == number;
}

Shape without_units(const Shape& shape) {
  Shape rest;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(rest), [](const Expr& e) { return !(e == Expr(1)); });
  return rest;
}

bool apply_rules(Graph& graph, std::span<const Rule> rules) {
  bool changed = graph.erase_dead();
  const std::size_t most = kMaxRuleRounds + graph.size();
  for (std::size_t round = 0;; ++round) {
    OCLC_CHECK(round < most, "rules that undo each other");
    bool again = false;
    for (Node* node : graph.nodes()) {
      const bool live = std::any_of(node->outputs.begin(), node->outputs.end(), [&](const auto& output) {
        return !output->users.empty() || graph.is_output(output.get());
      });
      if (!live) continue;
      again = std::any_of(rules.begin(), rules.end(), [&](Rule rule) { return rule(graph, node); }) || again;
    }
    if (!again) return changed;
    changed = true;
    graph.erase_dead();
  }
}

}  // namespace oclc

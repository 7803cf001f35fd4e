// What passes are written with: builds replacements in front of a node and asks simple questions about values.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/ops/builder.h"

namespace oclc {

// Replaces one node. New nodes stand in front of it and carry its source.
class Rewriter {
 public:
  Rewriter(Graph& graph, Node* node) : graph_(graph), node_(node) {}

  // Output 0 of a new node; CompileError if the operands do not fit.
  Value* call(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {});
  Value* constant(HostTensor tensor);
  Value* scalar(DType dtype, double value) { return constant(HostTensor::scalar(dtype, value)); }
  Value* integer(DType dtype, std::int64_t value);
  // These give x itself where nothing would change.
  Value* reshape(Value* x, const Shape& shape);
  Value* transpose(Value* x, const Ints& perm);
  Value* expand(Value* x, const Shape& shape);
  Value* slice(Value* x, std::vector<Expr> starts, std::vector<Expr> sizes, Ints steps);
  Value* concat(std::vector<Value*> values, std::int64_t axis);

  // Uses of the node's only output become uses of `value`, expanded to its shape where it is smaller, and the node goes. False,
  // without any new node left behind, if the type differs.
  bool replace(Value* value);
  // Takes the new nodes back; false.
  bool give_up();

 private:
  Graph& graph_;
  Node* node_;
  std::vector<Node*> made_;
};

inline bool is(const Node* node, std::string_view op) { return node && node->op->name == op; }
// The producer of the value if it is one of that operator, else null.
inline Node* producer(const Value* value, std::string_view op) {
  return value && is(value->producer, op) ? value->producer : nullptr;
}
// Whether the product's operands are integers: factors of the result are not theirs.
inline bool multiplies_integers(const Node* node) { return node->get_or<std::int64_t>("integers", 0) != 0; }
inline bool has_one_use(const Graph& graph, const Value* value) { return value->users.size() == 1 && !graph.is_output(value); }

// Makes `value` input `index` of the node if the types of the node's outputs stay the same; else changes nothing and gives
// false.
bool try_input(Graph& graph, Node* node, std::size_t index, Value* value);

// The number that all elements of the value equal, seen through reshape and expand; nothing if they differ, are unknown, or if
// the tensor has no elements or more than a million.
std::optional<double> splat_of(const Value* value);
bool is_splat(const Value* value, double number);

// Non-unit dimensions in order.
Shape without_units(const Shape& shape);

// Applies the rules to each live node until none changes anything; then removes what is dead. A rule gives true if it changed
// the graph; it may erase its node, but no node behind it.
using Rule = bool (*)(Graph&, Node*);
bool apply_rules(Graph& graph, std::span<const Rule> rules);

}  // namespace oclc

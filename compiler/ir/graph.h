// The graph: SSA dataflow over tensors. A Module holds entry points (one Graph each) that share device-resident state.
#pragma once
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/ir/tensor.h"

namespace oclc {

struct OpDef;
class Graph;
class Node;

// Physical order of a value's dimensions, outermost first; empty is row-major. A rank-4 value of order {0, 2, 3, 1} is stored
// channels-last.
struct Layout {
  std::vector<int> order;
  bool is_row_major() const { return order.empty(); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

class Value {
 public:
  int id = 0;        // unique in its graph, never reused; orders deterministic output
  std::string name;  // the model's name for it; may be empty
  TensorType type;
  Layout layout;
  Node* producer = nullptr;  // null for graph inputs
  int index = 0;             // which output of `producer`, or which graph input
  std::vector<Node*> users;  // one entry per use, in no particular order

  // Elements of a small integer tensor as expressions, row-major, where they are known at compile time: how shapes computed by
  // the model become symbolic dimensions.
  std::optional<std::vector<Expr>> content;
};

using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>, std::vector<Expr>, DType, HostTensor>;

class Node {
 public:
  int id = 0;
  const OpDef* op = nullptr;
  std::vector<Value*> inputs;  // null: absent optional input
  std::vector<std::unique_ptr<Value>> outputs;
  std::map<std::string, Attribute, std::less<>> attributes;
  std::vector<std::unique_ptr<Graph>> bodies;  // sub-graphs of control operators
  std::string source;                          // names of the model's nodes it comes from, joined by '+'

  Value* output(std::size_t i = 0) const { return outputs.at(i).get(); }
  bool has(std::string_view name) const { return attributes.find(name) != attributes.end(); }
  // The attribute; InternalError if it is absent or of another type.
  template <class T>
  const T& get(std::string_view name) const;
  template <class T>
  T get_or(std::string_view name, T fallback) const;

 private:
  friend class Graph;
  std::list<std::unique_ptr<Node>>::iterator place_;  // in its graph
  const Graph* graph_ = nullptr;
};

// Nodes are kept in topological order. Values and nodes live until the graph is destroyed or they are erased.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  std::string name = "predict";

  Value* add_input(std::string name, TensorType type);
  // Appends a node (or inserts it before `before`) and infers the types of its outputs. Throws CompileError if the operands do
  // not fit the operator.
  Node* add(const OpDef& op, std::vector<Value*> inputs, std::map<std::string, Attribute, std::less<>> attributes = {},
            std::string source = {}, Node* before = nullptr, std::vector<std::unique_ptr<Graph>> bodies = {});
  void add_output(std::string name, Value* value);
  void rename_output(std::size_t index, std::string name);

  void set_input(Node* node, std::size_t index, Value* value);
  // All uses of `from`, graph outputs too, become uses of `to`.
  void replace_all_uses(Value* from, Value* to);
  // The node must have no uses left.
  void erase(Node* node);
  // Removes nodes that reach no output, last first. True if any went.
  bool erase_dead();
  // Restores topological order after insertions at the end; stable. InternalError on a cycle.
  void sort();

  const std::vector<std::unique_ptr<Value>>& inputs() const { return inputs_; }
  const std::vector<std::pair<std::string, Value*>>& outputs() const { return outputs_; }
  bool is_output(const Value* value) const;
  // Snapshot of the nodes in order: safe to iterate while nodes are added or erased later in the list.
  std::vector<Node*> nodes() const;
  std::size_t size() const { return nodes_.size(); }

 private:
  friend struct GraphCopy;
  Node* insert(std::unique_ptr<Node> node, Node* before);
  std::vector<std::unique_ptr<Value>> inputs_;
  std::vector<std::pair<std::string, Value*>> outputs_;
  std::list<std::unique_ptr<Node>> nodes_;
  int next_value_ = 0, next_node_ = 0;
};

// A named slice of a flat state variable, row-major: what users and checkpoints call a parameter.
struct StatePart {
  std::string name;
  std::int64_t offset = 0;  // in elements
  std::vector<std::int64_t> shape;
};

// Device-resident tensor shared by the entry points of a module. An entry's input of the same name is its value when the entry
// starts, an output of that name its value after the entry.
struct StateVariable {
  std::string name;
  TensorType type;
  HostTensor initial;             // empty type: zeros
  std::vector<StatePart> parts;   // none: the variable itself
  std::string carried_from = {};  // not empty: the model's output that it takes the value of in each run, see carry.h
};

// Two dimensions that must be equal when a plan runs: the model's node asks for it.
struct Assumption {
  Expr left, right;
  std::string node;
};

// What a model file or a user says of the model; plans keep it.
struct Property {
  std::string name, value;
};

struct Module {
  std::string name;
  std::vector<Expr> symbols;  // the dimension symbols, in order of appearance
  std::vector<StateVariable> states;
  std::vector<std::unique_ptr<Graph>> entries;
  std::vector<Assumption> assumptions;
  std::vector<Property> metadata;  // names differ
};

// A constant node's tensor, or null.
const HostTensor* constant_of(const Value* value);

// Structural checks: order, use lists, types as the operators infer them. Returns the first problem, or an empty string.
std::string verify(const Graph& graph);

// Throws the InternalError of Node::get.
[[noreturn]] void attribute_missing(const Node& node, std::string_view name);

template <class T>
const T& Node::get(std::string_view name) const {
  const auto at = attributes.find(name);
  if (at == attributes.end() || !std::holds_alternative<T>(at->second)) {
    attribute_missing(*this, name);
  }
  return std::get<T>(at->second);
}

template <class T>
T Node::get_or(std::string_view name, T fallback) const {
  return has(name) ? get<T>(name) : fallback;
}

}  // namespace oclc

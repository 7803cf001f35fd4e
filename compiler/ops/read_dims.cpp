#include "compiler/ops/read_dims.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/copy.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

bool uses(const Graph& graph, const std::vector<Expr>& dims);

bool uses(const std::vector<Expr>& list, const std::vector<Expr>& dims) {
  return std::any_of(list.begin(), list.end(), [&](const Expr& e) {
    return std::any_of(dims.begin(), dims.end(), [&](const Expr& d) { return e.uses(*d.symbol_name()); });
  });
}

bool uses(const Node& node, const std::vector<Expr>& dims) {
  for (const auto& output : node.outputs)
    if (uses(output->type.shape, dims) || (output->content && uses(*output->content, dims))) return true;
  for (const auto& [name, attribute] : node.attributes) {
    const auto* list = std::get_if<std::vector<Expr>>(&attribute);
    if (list && uses(*list, dims)) return true;
  }
  return std::any_of(node.bodies.begin(), node.bodies.end(), [&](const auto& body) { return uses(*body, dims); });
}

bool uses(const Graph& graph, const std::vector<Expr>& dims) {
  const std::vector<Node*> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) { return uses(*node, dims); });
}

class Nesting {
 public:
  Nesting(Graph& outer, Node& read) : outer_(outer), read_(read), body_(std::make_unique<Graph>()) { body_->name = outer.name; }

  void run() {
    const auto dims = read_.get<std::vector<Expr>>("dims");
    const std::vector<Node*> nodes = outer_.nodes();
    std::unordered_set<const Node*> inside;
    // Reads that move inside bring what uses their symbols with them.
    std::vector<Expr> symbols = dims;
    for (bool grows = true; grows;) {
      grows = false;
      for (const Node* node : nodes) {
        const auto is_inside = [&](const Value* v) { return v && v->producer && inside.count(v->producer) != 0; };
        if (inside.count(node) ||
            (node != &read_ && !std::any_of(node->inputs.begin(), node->inputs.end(), is_inside) && !uses(*node, symbols)))
          continue;
        inside.insert(node);
        if (node == &read_ || node->op->name != "read_dims") continue;
        const auto& more = node->get<std::vector<Expr>>("dims");
        symbols.insert(symbols.end(), more.begin(), more.end());
        grows = true;
      }
    }
    std::vector<Node*> moved;
    std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(moved), [&](Node* n) { return inside.count(n) != 0; });
    for (const Node* node : moved) move(*node, dims);
    std::vector<Value*> leaving;
    for (const auto& [name, value] : outer_.outputs()) {
      if (!value->producer || !inside.count(value->producer) || std::count(leaving.begin(), leaving.end(), value)) continue;
      leaving.push_back(value);
      body_->add_output(name, inner_.at(value));
    }
    std::vector<Value*> operands{read_.inputs[0]};
    operands.insert(operands.end(), captured_.begin(), captured_.end());
    nest_read_dims(*body_);
    std::vector<std::unique_ptr<Graph>> bodies;
    bodies.push_back(std::move(body_));
    const Node* bind = outer_.add(op("bind_dims"), operands, {{"dims", dims}, {"upper", read_.get<std::vector<Expr>>("upper")}},
                                  read_.source, nullptr, std::move(bodies));
    for (std::size_t i = 0; i < leaving.size(); ++i) {
      bind->output(i)->name = leaving[i]->name;
      outer_.replace_all_uses(leaving[i], bind->output(i));
    }
    std::for_each(moved.rbegin(), moved.rend(), [&](Node* node) { outer_.erase(node); });
  }

 private:
  // The value inside of the body. Constants are made again there, so that they stay constants.
  Value* enter(Value* value) {
    if (!value) return nullptr;
    if (const auto at = inner_.find(value); at != inner_.end()) return at->second;
    const Node* producer = value->producer;
    if (producer && producer->inputs.empty() && producer->op->kind == OpKind::generator) {
      const Node* copied = body_->add(*producer->op, {}, producer->attributes, producer->source);
      copied->output()->name = value->name;
      return inner_[value] = copied->output();
    }
    captured_.push_back(value);
    return inner_[value] =
               body_->add_input(value->name.empty() ? "captured" + std::to_string(captured_.size()) : value->name, value->type);
  }

  void move(const Node& node, const std::vector<Expr>& dims) {
    if (&node == &read_) {
      std::vector<std::int64_t> shape;
      for (const Expr& d : node.output()->type.shape) shape.push_back(d.value());
      inner_[node.output()] =
          body_->add(op("exprs"), {}, {{"values", dims}, {"shape", shape}, {"dtype", DType::i64}}, node.source)->output();
      return;
    }
    std::vector<Value*> inputs;
    for (Value* input : node.inputs) inputs.push_back(enter(input));
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& body : node.bodies) bodies.push_back(copy_graph(*body));
    const Node* copied = body_->add(*node.op, std::move(inputs), node.attributes, node.source, nullptr, std::move(bodies));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      copied->output(i)->name = node.output(i)->name;
      copied->output(i)->layout = node.output(i)->layout;
      inner_[node.output(i)] = copied->output(i);
    }
  }

  Graph& outer_;
  Node& read_;
  std::unique_ptr<Graph> body_;
  std::unordered_map<const Value*, Value*> inner_;
  std::vector<Value*> captured_;
};

// A read whose operand does not depend on the symbols of another; null if there is none.
Node* next_read(const Graph& graph) {
  std::vector<Node*> reads;
  for (Node* node : graph.nodes()) {
    if (node->op->name == "read_dims") reads.push_back(node);
  }
  for (Node* read : reads) {
    std::vector<Expr> others;
    for (const Node* other : reads) {
      const auto& dims = other->get<std::vector<Expr>>("dims");
      if (other != read) others.insert(others.end(), dims.begin(), dims.end());
    }
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> open{read};
    bool free = true;
    while (free && !open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (!seen.insert(node).second) continue;
      free = !uses(*node, others);
      for (const Value* input : node->inputs) {
        if (input && input->producer) open.push_back(input->producer);
      }
    }
    if (free) return read;
  }
  OCLC_CHECK(reads.empty(), "reads do not depend on each other in a circle");
  return nullptr;
}

}  // namespace

void nest_read_dims(Graph& graph) {
  for (const Node* node : graph.nodes()) {
    for (const auto& body : node->bodies) nest_read_dims(*body);
  }
  bool nested = false;
  while (Node* read = next_read(graph)) {
    Nesting(graph, *read).run();
    nested = true;
  }
  if (nested) graph.erase_dead();  // generators that bodies have copies of
}

}  // namespace oclc

// Nodes between `wrt` and the loss are visited from the last to the first; the gradients of a value's uses are summed when its
// producer is visited, in the order in which the uses were. Gradients flow through floating-point values alone.
#include "compiler/ops/gradients/autodiff.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/op_def.h"
#include "compiler/ops/builder.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

std::string name_of(const Node& node) {
  return fmt::format("node '{}' ({})", node.source.empty() ? node.output()->name : node.source, node.op->name);
}

class Differentiation {
 public:
  Differentiation(Graph& graph, Value* loss, std::span<Value* const> wrt)
      : graph_(graph), builder_(graph), loss_(loss), wrt_(wrt), nodes_(graph.nodes()) {
    find_dependent();
  }

  std::vector<Value*> run() {
    uses_[loss_].push_back(fill(loss_->type, 1));
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      if (depends(*nodes_[i])) visit(*nodes_[i]);
    }
    std::vector<Value*> result;
    for (Value* value : wrt_) {
      Value* gradient = gradient_of(value);
      result.push_back(gradient ? gradient : fill(value->type, 0));
    }
    if (!missing_.empty()) result.clear();
    erase_unused(result);
    if (!missing_.empty()) {
      throw CompileError({.stage = "autodiff",
                          .wanted = "operators with a gradient between the loss and what is trained",
                          .found = fmt::format("none for {}", fmt::join(missing_, ", ")),
                          .advice = "freezing what lies before these nodes, or removing them",
                          .exit_code = ExitCode::unsupported});
    }
    return result;
  }

 private:
  // Values that depend on `wrt` through floating-point values.
  void find_dependent() {
    dependent_.insert(wrt_.begin(), wrt_.end());
    for (const Node* node : nodes_) {
      bool found = false;
      for (const Value* input : node->inputs) found = found || dependent_.count(input) != 0;
      if (!found) continue;
      for (const auto& output : node->outputs) {
        if (is_float(output->type.dtype)) dependent_.insert(output.get());
      }
    }
  }

  bool depends(const Node& node) const {
    for (const Value* input : node.inputs) {
      if (dependent_.count(input) != 0) return true;
    }
    return false;
  }

  Value* fill(const TensorType& type, double number) {
    Value* scalar = builder_.scalar(type.dtype, number);
    return type.rank() == 0 ? scalar : builder_.expand(scalar, type.shape);
  }

  // The sum of the gradients of the value's uses; null: none.
  Value* gradient_of(Value* value) {
    const auto at = uses_.find(value);
    if (at == uses_.end()) return nullptr;
    std::vector<Value*>& parts = at->second;
    if (parts.size() > 1) join_slices(parts, value->type.shape);
    while (parts.size() > 1) {
      Value* last = parts.back();
      parts.pop_back();
      parts.back() = builder_.add(parts.back(), last);
    }
    return parts.front();
  }

  // Notes a missing gradient; the search goes on before the node, so that all that is missing is found.
  std::vector<Value*> go_on_without(const Node& node, const std::string& supported) {
    const std::string entry =
        fmt::format("{}{}", name_of(node), supported.empty() ? "" : fmt::format(": only for {}", supported));
    if (std::find(missing_.begin(), missing_.end(), entry) == missing_.end()) missing_.push_back(entry);
    std::vector<Value*> zeros;
    for (const Value* input : node.inputs) zeros.push_back(dependent_.count(input) != 0 ? fill(input->type, 0) : nullptr);
    return zeros;
  }

  // Where slices cut the value up, their gradients, each among zeros, are one concatenation: no kernel adds zeros.
  void join_slices(std::vector<Value*>& parts, const Shape& shape) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      std::vector<Value*> pieces, used;
      Expr end = 0;
      bool found = true;
      while (found && !(end == shape[axis])) {
        const auto next = std::find_if(parts.begin(), parts.end(), [&](const Value* part) {
          return starts_at(part, axis, end) && std::find(used.begin(), used.end(), part) == used.end();
        });
        found = next != parts.end();
        if (!found) break;
        used.push_back(*next);
        pieces.push_back((*next)->producer->inputs[0]);
        end += pieces.back()->type.shape[axis];
      }
      if (!found || pieces.size() < 2) continue;
      Value* joined = builder_.concat(std::move(pieces), static_cast<std::int64_t>(axis));
      const auto first = std::find(parts.begin(), parts.end(), used.front());
      *first = joined;
      std::erase_if(parts, [&](const Value* part) { return std::find(used.begin(), used.end(), part) != used.end(); });
      return;
    }
  }

  // Is this zeros around a tensor that begins at `start` of the axis and has elements, and fills all others?
  static bool starts_at(const Value* part, std::size_t axis, const Expr& start) {
    const Node* pad = part->producer;
    if (!pad || pad->op->name != "pad" || pad->get<std::string>("mode") != "constant" || pad->get<double>("value") != 0)
      return false;
    const auto &before = pad->get<std::vector<Expr>>("before"), &after = pad->get<std::vector<Expr>>("after");
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (i != axis && !(before[i] == Expr(0) && after[i] == Expr(0))) return false;
    }
    return before[axis] == start && !(pad->inputs[0]->type.shape[axis] == Expr(0));
  }

  void visit(const Node& node) {
    builder_.set_source(node.source.empty() ? "" : node.source + "/grad");
    std::vector<Value*> gradients;
    bool any = false;
    for (const auto& output : node.outputs) {
      gradients.push_back(dependent_.count(output.get()) != 0 ? gradient_of(output.get()) : nullptr);
      any = any || gradients.back();
    }
    if (!any) return;
    std::vector<Value*> found;
    if (node.op->gradient) {
      try {
        found = node.op->gradient(builder_, node, gradients);
      } catch (const CompileError& error) {
        if (error.parts().exit_code != ExitCode::unsupported) throw;
        found = go_on_without(node, error.parts().wanted);
      }
    } else {
      found = go_on_without(node, {});
    }
    OCLC_CHECK(found.size() == node.inputs.size(), fmt::format("gradient of {}: one per operand", node.op->name));
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i] || dependent_.count(node.inputs[i]) == 0) continue;
      OCLC_CHECK(found[i]->type == node.inputs[i]->type, fmt::format("gradient of {}: {} for operand {} of {}", node.op->name,
                                                                     found[i]->type.text(), i, node.inputs[i]->type.text()));
      uses_[node.inputs[i]].push_back(found[i]);
    }
  }

  // Gradients that nothing reads, of operands that do not depend on `wrt`.
  void erase_unused(const std::vector<Value*>& kept) {
    const std::unordered_set<const Value*> results(kept.begin(), kept.end());
    const std::unordered_set<const Node*> before(nodes_.begin(), nodes_.end());
    const std::vector<Node*> all = graph_.nodes();
    for (std::size_t i = all.size(); i-- > 0;) {
      bool used = before.count(all[i]) != 0;
      for (const auto& output : all[i]->outputs) used = used || !output->users.empty() || results.count(output.get()) != 0;
      if (!used) graph_.erase(all[i]);
    }
  }

  Graph& graph_;
  Builder builder_;
  Value* loss_;
  std::span<Value* const> wrt_;
  const std::vector<Node*> nodes_;  // before any gradient
  std::unordered_set<const Value*> dependent_;
  std::unordered_map<const Value*, std::vector<Value*>> uses_;  // gradients of the value's uses
  std::vector<std::string> missing_;
};

}  // namespace

std::vector<Value*> add_gradients(Graph& graph, Value* loss, std::span<Value* const> wrt) {
  OCLC_CHECK(is_float(loss->type.dtype) && loss->type.elements() == Expr(1),
             "the loss is one number, not " + loss->type.text());
  for (const Value* value : wrt) OCLC_CHECK(is_float(value->type.dtype), "a gradient with respect to " + value->type.text());
  return Differentiation(graph, loss, wrt).run();
}

}  // namespace oclc

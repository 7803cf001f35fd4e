#include "compiler/kernels/kernel_part.h"

#include <algorithm>

namespace oclc {

void keep_needed(Kernel& kernel, std::vector<NodeId> roots) {
  std::vector<bool> needed(kernel.nodes.size(), false);
  std::vector<NodeId>& stack = roots;
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (id < 0 || needed[static_cast<std::size_t>(id)]) continue;
    needed[static_cast<std::size_t>(id)] = true;
    const ScalarNode& n = kernel.nodes[static_cast<std::size_t>(id)];
    stack.insert(stack.end(), n.args.begin(), n.args.end());
    std::vector<Expr> indices = n.guard;
    indices.push_back(n.index);
    for (const Expr& e : indices) {
      for (const std::string& s : e.symbols()) {
        if (const auto dynamic = dynamic_index(s)) stack.push_back(*dynamic);
      }
    }
  }
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) kernel.nodes[i] = ScalarNode{};
  }
}

void drop_unused_operands(Kernel& kernel) {
  std::vector<int> number(kernel.operands.size(), -1);
  std::vector<Operand> kept;
  const auto keep = [&](int& operand) {
    int& n = number[static_cast<std::size_t>(operand)];
    if (n < 0) {
      n = static_cast<int>(kept.size());
      kept.push_back(kernel.operands[static_cast<std::size_t>(operand)]);
    }
    operand = n;
  };
  for (ScalarNode& node : kernel.nodes) {
    if (node.kind == ScalarNode::Kind::load) keep(node.operand);
  }
  for (Store& store : kernel.stores) keep(store.operand);
  kernel.operands = std::move(kept);
}

Kernel part_for(const Kernel& kernel, NodeId root) {
  Kernel part = kernel;
  part.stores.clear();
  part.stages.clear();
  keep_needed(part, {root});
  return part;
}

std::set<std::string> axis_names(const Kernel& kernel) {
  std::set<std::string> names;
  for (const auto* axes : {&kernel.axes, &kernel.reduction}) {
    for (const Axis& axis : *axes) names.insert(axis.name);
  }
  return names;
}

bool loads_from(const Kernel& kernel, int buffer) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const ScalarNode& n) {
    return n.kind == ScalarNode::Kind::load && kernel.operands[static_cast<std::size_t>(n.operand)].buffer == buffer;
  });
}

bool loads_what_it_stores(const Kernel& kernel) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) {
    return loads_from(kernel, kernel.operands[static_cast<std::size_t>(s.operand)].buffer);
  });
}

bool any_needed(const Kernel& kernel, NodeId root, const std::function<bool(const ScalarNode&)>& is,
                const std::function<bool(const ScalarNode&)>& ends) {
  std::vector<bool> seen(kernel.nodes.size(), false);
  std::vector<NodeId> stack{root};
  while (!stack.empty()) {
    const auto at = static_cast<std::size_t>(stack.back());
    stack.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const ScalarNode& n = kernel.nodes[at];
    if (ends(n)) continue;
    if (is(n)) return true;
    stack.insert(stack.end(), n.args.begin(), n.args.end());
  }
  return false;
}

bool reads_values(const Expr& e) {
  const auto symbols = e.symbols();
  return std::any_of(symbols.begin(), symbols.end(), [](const std::string& s) { return dynamic_index(s).has_value(); });
}

std::vector<Expr> indices_of(const Kernel& kernel) {
  std::vector<Expr> all;
  for (const ScalarNode& n : kernel.nodes) {
    all.push_back(n.index);
    all.insert(all.end(), n.guard.begin(), n.guard.end());
  }
  for (const Store& s : kernel.stores) all.push_back(s.index);
  return all;
}

}  // namespace oclc

#include "compiler/kernels/fusion/group_draft.h"

#include <algorithm>

namespace oclc {

GroupDraft::GroupDraft(const Graph& of, const GroupOptions& with) : graph(of), options(with), all_nodes(of.nodes()) {
  for (std::size_t i = 0; i < all_nodes.size(); ++i) position[all_nodes[i]] = i;
}

int GroupDraft::start_group(Node* node, bool anchor) {
  const int id = static_cast<int>(groups.size());
  groups.push_back({anchor ? node : nullptr, {node}, {}});
  group_by_node[node] = id;
  return id;
}

std::optional<int> GroupDraft::group_of(const Node* node) const {
  const auto at = group_by_node.find(node);
  return at == group_by_node.end() ? std::nullopt : std::optional(at->second);
}

bool GroupDraft::depends_on(const Value* value, int id) const {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> stack;
  const auto visit = [&](const Value* v) {
    if (v && v->producer && seen.insert(v->producer).second) stack.push_back(v->producer);
  };
  visit(value);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    const auto group = group_of(node);
    if (group == id) return true;
    if (group) {
      for (const Node* member : groups[static_cast<std::size_t>(*group)].nodes) {
        seen.insert(member);
        for (const Value* input : member->inputs) visit(input);
      }
    } else {
      for (const Value* input : node->inputs) visit(input);
    }
  }
  return false;
}

void GroupDraft::add_to_group(Node* node, int id) {
  group_by_node[node] = id;
  auto& nodes = groups[static_cast<std::size_t>(id)].nodes;
  nodes.push_back(node);
  std::sort(nodes.begin(), nodes.end(), [&](const Node* a, const Node* b) { return position.at(a) < position.at(b); });
}

void GroupDraft::restore(int id, const std::vector<Node*>& nodes) {
  for (const Node* node : groups[static_cast<std::size_t>(id)].nodes) group_by_node.erase(node);
  groups[static_cast<std::size_t>(id)].nodes = nodes;
  for (const Node* node : nodes) group_by_node[node] = id;
}

bool GroupDraft::is_cyclic(int id) const {
  const auto& nodes = groups[static_cast<std::size_t>(id)].nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
    return std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) { return needs_back(v, id); });
  });
}

bool GroupDraft::needs_back(const Value* value, int id) const {
  if (!value || !value->producer || group_of(value->producer) == id) return false;
  if (!inlined.count(value->producer)) return depends_on(value, id);
  const auto& inputs = value->producer->inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const Value* input) { return needs_back(input, id); });
}

}  // namespace oclc

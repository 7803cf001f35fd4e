#include "compiler/kernels/fusion/group_draft.h"

#include <algorithm>

namespace oclc {

GroupDraft::GroupDraft(const Graph& of, const GroupOptions& with) : graph(of), options(with), all_nodes(of.nodes()) {
  for (std::size_t i = 0; i < all_nodes.size(); ++i) position[all_nodes[i]] = i;
  furthest_.assign(all_nodes.size() + 1, 0);
}

void GroupDraft::note_extent(const Node* node, int id) {
  const std::size_t at = position.at(node), group = static_cast<std::size_t>(id);
  if (group == extents_.size()) extents_.push_back({at, at});
  Extent& extent = extents_[group];
  extent = {std::min(extent.first, at), std::max(extent.last, at)};
  for (std::size_t i = extent.first + 1; i < furthest_.size(); i += i & (~i + 1))
    furthest_[i] = std::max(furthest_[i], extent.last);
}

// The last position of the groups that have a node at `position` or before.
std::size_t GroupDraft::furthest(std::size_t at) const {
  std::size_t most = at;
  for (std::size_t i = at + 1; i > 0; i -= i & (~i + 1)) most = std::max(most, furthest_[i]);
  return most;
}

// False if nothing that the node at `from` needs stands at `to` or behind: operands stand before it, and behind it what other
// nodes of their groups need.
bool GroupDraft::may_reach(std::size_t from, std::size_t to) const {
  while (from < to) {
    const std::size_t next = furthest(from);
    if (next == from) return false;
    from = next;
  }
  return true;
}

int GroupDraft::start_group(Node* node, bool anchor) {
  const int id = static_cast<int>(groups.size());
  groups.push_back({anchor ? node : nullptr, {node}, {}});
  group_by_node[node] = id;
  note_extent(node, id);
  return id;
}

void GroupDraft::append(Node* node, int id) {
  group_by_node[node] = id;
  groups[static_cast<std::size_t>(id)].nodes.push_back(node);
  note_extent(node, id);
}

std::optional<int> GroupDraft::group_of(const Node* node) const {
  const auto at = group_by_node.find(node);
  return at == group_by_node.end() ? std::nullopt : std::optional(at->second);
}

bool GroupDraft::depends_on(const Value* value, int id) const {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> stack;
  const std::size_t first = extents_[static_cast<std::size_t>(id)].first;
  const auto visit = [&](const Value* v) {
    if (v && v->producer && may_reach(position.at(v->producer), first) && seen.insert(v->producer).second)
      stack.push_back(v->producer);
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
  append(node, id);
  auto& nodes = groups[static_cast<std::size_t>(id)].nodes;
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
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> stack{value};
  while (!stack.empty()) {
    const Value* v = stack.back();
    stack.pop_back();
    if (!v || !v->producer || !seen.insert(v).second || group_of(v->producer) == id) continue;
    if (inlined.count(v->producer))
      stack.insert(stack.end(), v->producer->inputs.begin(), v->producer->inputs.end());
    else if (depends_on(v, id))
      return true;
  }
  return false;
}

}  // namespace oclc

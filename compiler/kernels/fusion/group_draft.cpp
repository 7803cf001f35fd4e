#include "compiler/kernels/fusion/group_draft.h"

#include <algorithm>
#include <utility>

namespace oclc {

GroupDraft::GroupDraft(const Graph& of, const GroupOptions& with) : graph(of), options(with), all_nodes(of.nodes()) {
  for (std::size_t i = 0; i < all_nodes.size(); ++i) position[all_nodes[i]] = i;
  furthest_.assign(all_nodes.size() + 1, 0);
  seen_.assign(all_nodes.size(), 0);
  for (const Node* node : all_nodes) {
    std::vector<std::size_t>& operands = operands_.emplace_back();
    for (const Value* input : node->inputs) {
      const auto at = input && input->producer ? position.find(input->producer) : position.end();
      if (at != position.end()) operands.push_back(at->second);
    }
  }
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

bool GroupDraft::depends_on(const Value* value, int id) const { return any_depends_on({&value, 1}, id); }

bool GroupDraft::any_depends_on(std::span<const Value* const> values, int id) const {
  ++walk_;
  std::vector<std::size_t> stack;
  // Whether a position may reach the group grows with it: those from `reaching` on do, those below `unknown` do not.
  const std::size_t first = extents_[static_cast<std::size_t>(id)].first;
  std::size_t reaching = first, unknown = 0;
  const auto visit = [&](std::size_t at) {
    if (at < unknown || seen_[at] == walk_) return;
    if (at < reaching && !may_reach(at, first)) {
      unknown = at + 1;
      return;
    }
    reaching = std::min(reaching, at);
    seen_[at] = walk_;
    stack.push_back(at);
  };
  for (const Value* value : values)
    if (value && value->producer) visit(position.at(value->producer));
  while (!stack.empty()) {
    const std::size_t at = stack.back();
    stack.pop_back();
    const auto group = group_of(all_nodes[at]);
    if (group == id) return true;
    if (!group) {
      for (const std::size_t operand : operands_[at]) visit(operand);
      continue;
    }
    for (const Node* member : groups[static_cast<std::size_t>(*group)].nodes) {
      const std::size_t of_member = position.at(member);
      seen_[of_member] = walk_;
      for (const std::size_t operand : operands_[of_member]) visit(operand);
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
  std::vector<const Value*> read;
  for (const Node* node : groups[static_cast<std::size_t>(id)].nodes)
    read.insert(read.end(), node->inputs.begin(), node->inputs.end());
  return needs_back(std::move(read), id);
}

bool GroupDraft::needs_back(std::vector<const Value*> values, int id) const {
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> stored;
  while (!values.empty()) {
    const Value* v = values.back();
    values.pop_back();
    if (!v || !v->producer || !seen.insert(v).second || group_of(v->producer) == id) continue;
    if (inlined.count(v->producer))
      values.insert(values.end(), v->producer->inputs.begin(), v->producer->inputs.end());
    else
      stored.push_back(v);
  }
  return any_depends_on(stored, id);
}

}  // namespace oclc

// Groups while they are being made: what the steps of grouping share.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/kernels/fusion/group.h"

namespace oclc {

// Nodes of the largest group: kernels take longer to compile than in proportion to what they compute.
inline constexpr std::size_t kLargestGroup = 512;

struct GroupDraft {
  GroupDraft(const Graph& of, const GroupOptions& with);

  const Graph& graph;
  const GroupOptions options;
  std::vector<Node*> all_nodes;
  std::unordered_map<const Node*, std::size_t> position;
  std::vector<Group> groups;
  std::unordered_map<const Node*, int> group_by_node;
  std::unordered_set<const Node*> inlined;  // never stored: between reductions of one kernel
  std::unordered_set<const Node*> placed;
  std::unordered_map<const Value*, const Node*> placed_in;
  std::unordered_map<const Node*, std::string> why_not;
  // By value: groups with a reduction whose operand may be computed from it, or it from the operand. What join_sibling() asks,
  // and how many groups it knows.
  std::unordered_map<const Value*, std::set<int>> reductions_near;
  std::size_t groups_noted = 0;

  int start_group(Node* node, bool anchor);
  void append(Node* node, int id);        // behind the group's other nodes
  void add_to_group(Node* node, int id);  // where it stands in the graph
  bool is_full(int id) const { return groups[static_cast<std::size_t>(id)].nodes.size() >= kLargestGroup; }
  void restore(int id, const std::vector<Node*>& nodes);
  std::optional<int> group_of(const Node* node) const;
  // True if computing `value` needs a result of group `id`. Groups count as a whole: what one member reads, all need.
  bool depends_on(const Value* value, int id) const;
  bool any_depends_on(std::span<const Value* const> values, int id) const;
  // True if another kernel stands between results of group `id` and any of the values.
  bool needs_back(std::vector<const Value*> values, int id) const;
  bool is_cyclic(int id) const;

 private:
  void note_extent(const Node* node, int id);
  std::size_t furthest(std::size_t position) const;
  bool may_reach(std::size_t from, std::size_t position) const;

  // Of each group the first and the last of the positions at which it ever had a node.
  struct Extent {
    std::size_t first, last;
  };
  std::vector<Extent> extents_;
  std::vector<std::vector<std::size_t>> operands_;  // positions of the producers of each node's inputs
  mutable std::vector<std::size_t> seen_;           // by position: the last walk that came by
  mutable std::size_t walk_ = 0;
  std::vector<std::size_t> furthest_;  // a Fenwick tree: the last positions of groups by their first, for maxima of prefixes
};

// Elementwise operators of at most this many flops are computed again rather than stored between reductions.
constexpr int kCheapFlops = 2;

// Reductions over the same axes of what is computed from the same values become one kernel, even if one needs the result of
// another: mean and variance, the sums of a batch norm's gradient. The group that `node` joined, if any.
std::optional<int> join_sibling(GroupDraft& draft, Node* node);
// Elementwise work on the rows that reductions along the innermost axes read joins them, if its result is stored at all: a
// layer norm's gradient reads its rows once.
void grow_row(GroupDraft& draft, int id);
// What no group took yet is inlined into its readers, placed in a concatenation, or a pointwise kernel of its own.
void store_rest(GroupDraft& draft);

}  // namespace oclc

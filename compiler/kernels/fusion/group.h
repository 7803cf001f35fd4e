// Grouping: which nodes of a graph become one kernel. Anchors (contractions, windows, reductions, rows) are one a kernel and
// take the elementwise work after them into their store; what is left is inlined into its consumers' loads or becomes a
// pointwise kernel, by a cost model in bytes and flops.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/targets/costs.h"

namespace oclc {

struct GroupOptions {
  bool fuse = true;  // false: one kernel an operator; only reshapes stay free
  // Of products whose operands are both of run time the left one is laid out and the right one packed, by kernels that read
  // each element once, and depthwise convolutions find in a cache what neighbours read.
  bool lays_out_operands = false;
  // Of such products both operands are copied in pieces beside the multiplications, faster as they lie than computed.
  bool copies_operands = false;
  FusionCosts costs{};  // the target's
};

struct Group {
  Node* anchor = nullptr;             // null: a pointwise kernel
  std::vector<Node*> nodes;           // anchor and epilogue, or the pointwise root; in graph order
  std::vector<const Value*> outputs;  // values the kernel stores
};

struct Grouping {
  std::vector<Group> groups;  // in an order in which every group follows what it reads
  // Concatenations that cost nothing: kernels store their results straight into the slices. Operands that are not in
  // `placed_in` (inputs, constants, values stored elsewhere) are copied.
  std::unordered_set<const Node*> placed_concats;
  std::unordered_map<const Value*, const Node*> placed_in;
  std::unordered_set<const Value*> stored;               // outputs of all groups and the placed concats
  std::unordered_map<const Node*, std::string> why_not;  // reasons for --report, by node
};

// Bijective index map: reshape or transpose.
bool is_bijective_movement(const Node& node);

Grouping group_nodes(const Graph& graph, const GroupOptions& options);

}  // namespace oclc

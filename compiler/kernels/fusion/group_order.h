// The order in which groups run.
#pragma once
#include <unordered_map>
#include <vector>

#include "compiler/kernels/fusion/group.h"

namespace oclc {

// Indices of `groups` such that a group follows those whose results it needs, through inlined nodes and placed concatenations.
// An output with the name of an input is the new value of the same storage: where it can, its writer follows all that read the
// old one. Among such orders one that releases memory early, see release_order.h. `group_of`: which group a node belongs to;
// `placed_in`: see Grouping.
std::vector<std::size_t> order_groups(const Graph& graph, const std::vector<Group>& groups,
                                      const std::unordered_map<const Node*, int>& group_of,
                                      const std::unordered_map<const Value*, const Node*>& placed_in);

}  // namespace oclc

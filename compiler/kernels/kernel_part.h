// The part of a kernel that some of its values need: what a hole of a template is generated from.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Makes every node that none of `roots` needs a constant; numbers of nodes stay the same.
void keep_needed(Kernel& kernel, std::vector<NodeId> roots);
// Drops the operands that nothing loads or stores; the others are numbered in the order of their first use.
void drop_unused_operands(Kernel& kernel);
// The kernel without stores and stages, and with the nodes that `root` needs.
Kernel part_for(const Kernel& kernel, NodeId root);
// Names of the axes that it computes and sums over.
std::set<std::string> axis_names(const Kernel& kernel);
// Whether a node loads an element of `buffer`.
bool loads_from(const Kernel& kernel, int buffer);
// Whether it loads from the buffer of one of its stores.
bool loads_what_it_stores(const Kernel& kernel);
// Whether `is` holds for `root` or for a node that it is computed from, none of which, nor what those need, `ends` holds for.
bool any_needed(const Kernel& kernel, NodeId root, const std::function<bool(const ScalarNode&)>& is,
                const std::function<bool(const ScalarNode&)>& ends);
// Whether an index or guard depends on the value of a node.
bool reads_values(const Expr& e);
// Every index and guard of its nodes, and the indices of its stores.
std::vector<Expr> indices_of(const Kernel& kernel);

}  // namespace oclc

// The part of a kernel that some of its values need: what a hole of a template is generated from.
#pragma once
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Makes every node that none of `roots` needs a constant; numbers of nodes stay the same.
void keep_needed(Kernel& kernel, std::vector<NodeId> roots);
// The kernel without stores and stages, and with the nodes that `root` needs.
Kernel part_for(const Kernel& kernel, NodeId root);
// Whether every buffer that loads and stores of it address begins at a multiple of 16 bytes: callers bind inputs and outputs at
// any element.
bool buffers_are_aligned(const Kernel& kernel, const std::vector<Buffer>& buffers);
// Every index and guard of its nodes, and the indices of its stores.
std::vector<Expr> indices_of(const Kernel& kernel);

}  // namespace oclc

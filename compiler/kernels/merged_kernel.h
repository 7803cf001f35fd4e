// One kernel from the parts of two.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Whether an index or guard depends on the value of a node: numbers of nodes stand in it.
bool has_dynamic_indices(const Kernel& kernel);

// Whether all of them stand there as summands times constants, and can be renumbered.
bool has_linear_values(const Kernel& kernel);

// Appends the nodes, stages, stores and operands of `from`, whose indices have linear values at most, to `kernel`, with `by` in
// index expressions, and its names to the sources. An operand that both read is one. Axes stay those of `kernel`.
struct Appended {
  NodeId first_node = 0;
  int first_stage = 0;
  std::vector<int> operands;  // of `kernel`, by those of `from`
};
Appended append_kernel(Kernel& kernel, const Kernel& from, const Substitution& by);

// Names operands in their order, x for those that are read and y for those that are written, and drops those that nothing uses.
void number_operands(Kernel& kernel);

// Buffers that the kernel reads, or writes.
std::set<int> buffers_of(const Kernel& kernel, bool written);
// True if moving `kernel` over `steps`, kernels all of them, changes nothing that it or they read.
bool can_pass(const Kernel& kernel, const Schedule& schedule, const Step* first, const Step* last);

// Drops the kernels that no step runs.
void drop_unused_kernels(Schedule& schedule);

}  // namespace oclc

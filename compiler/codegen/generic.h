// Loop nests for pointwise, reduce and row kernels (and, as a fallback, for contractions without a template).
#pragma once
#include "compiler/codegen/codegen.h"

namespace oclc {

GeneratedKernel generate_loops(Kernel kernel, const Target& target);
// The whole iteration space as the body of one function: for one work-item on a CPU, shared among the `group` work-items of
// one work-group elsewhere.
std::string whole_loops(Kernel kernel, const Target& target, int group);

// Shared with the templates' generators.
std::string kernel_head(const Kernel& kernel, const GeneratedKernel& generated);  // the comment before the code
std::string parameter_list(const Kernel& kernel, bool with_offsets);              // "__global const float* restrict x, ..."
std::string argument_list(const Kernel& kernel);                                  // "x + x_at, ..., dim_N"
std::vector<KernelArgument> arguments_of(const Kernel& kernel);
bool needs_wide_index(const Kernel& kernel, const std::vector<Expr>& extents);
// i64 index values that fit into an int become i32, comparisons and arithmetic on them too.
void narrow_indices(Kernel& kernel);

}  // namespace oclc
